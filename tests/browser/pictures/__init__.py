"""Pictures of the dashboard, and a service that has something to show on each of its pages."""
