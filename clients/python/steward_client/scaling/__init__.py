"""Where autoscalers of others ask Steward: KEDA, a VerticalPodAutoscaler, a HorizontalPodAutoscaler, Prometheus.

Each is a process of its own and a pure client of the service; the extra ``scaling`` brings what they are served with.
"""
