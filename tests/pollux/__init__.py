"""The published simulator of Pollux (Qiao et al., OSDI 2021): what clusters of the kind are held against."""
