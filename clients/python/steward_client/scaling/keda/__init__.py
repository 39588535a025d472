"""An external scaler of KEDA over gRPC; ``externalscaler_pb2`` is generated from the ``.proto`` beside it."""
