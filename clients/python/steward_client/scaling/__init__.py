"""Decisions for other autoscalers: KEDA, VerticalPodAutoscaler, HorizontalPodAutoscaler, and metrics for Prometheus.

Each is a process of its own and only a client of the service; the extra ``scaling`` installs the needed packages.
"""
