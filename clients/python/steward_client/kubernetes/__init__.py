"""Minimal client of the Kubernetes API for autoscalers and actuators: objects, patches, quantities."""

from .api import KubernetesApi, KubernetesError
from .quantity import Conversion, QuantityError, parse_quantity, quantity

__all__ = ["Conversion", "KubernetesApi", "KubernetesError", "QuantityError", "parse_quantity", "quantity"]
