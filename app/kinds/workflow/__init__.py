"""Kind ``workflow``, its serving half: starts of batch jobs and workflow tasks on priced nodes."""
