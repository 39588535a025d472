"""Contains all the data models used in inputs/outputs"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adaptation_read import AdaptationRead
    from .adaptation_read_state import AdaptationReadState
    from .agent_read import AgentRead
    from .agent_read_report import AgentReadReport
    from .agent_read_standing import AgentReadStanding
    from .agent_read_status import AgentReadStatus
    from .arrivals_read import ArrivalsRead
    from .arrivals_read_of_queues import ArrivalsReadOfQueues
    from .arrived import Arrived
    from .audit_read import AuditRead
    from .audit_read_detail_type_0 import AuditReadDetailType0
    from .backfill_window import BackfillWindow
    from .batch_prediction import BatchPrediction
    from .batch_prediction_arrivals_type_0 import BatchPredictionArrivalsType0
    from .batch_start import BatchStart
    from .batches_read import BatchesRead
    from .cap_use import CapUse
    from .cap_use_of import CapUseOf
    from .cap_use_scope import CapUseScope
    from .cap_use_state import CapUseState
    from .caps import Caps
    from .caps_read import CapsRead
    from .cluster_decision import ClusterDecision
    from .cluster_decision_source import ClusterDecisionSource
    from .cluster_execution import ClusterExecution
    from .cluster_patch import ClusterPatch
    from .cluster_patch_prices import ClusterPatchPrices
    from .cluster_patch_queues import ClusterPatchQueues
    from .cluster_patch_weights import ClusterPatchWeights
    from .cluster_prediction import ClusterPrediction
    from .cluster_report import ClusterReport
    from .cluster_spec import ClusterSpec
    from .cluster_start import ClusterStart
    from .cluster_start_mode import ClusterStartMode
    from .cluster_weights import ClusterWeights
    from .comparison import Comparison
    from .comparison_allocation_type_0 import ComparisonAllocationType0
    from .contingency import Contingency
    from .contingency_allocation import ContingencyAllocation
    from .convergence import Convergence
    from .count import Count
    from .criterion import Criterion
    from .curves_read import CurvesRead
    from .decision import Decision
    from .decision_allocation import DecisionAllocation
    from .decision_chances import DecisionChances
    from .decision_delta import DecisionDelta
    from .decision_predicted import DecisionPredicted
    from .decision_reason import DecisionReason
    from .decision_source import DecisionSource
    from .disturbances import Disturbances
    from .drift_notice import DriftNotice
    from .drift_notice_direction import DriftNoticeDirection
    from .drift_read import DriftRead
    from .drift_response import DriftResponse
    from .drift_response_algorithm_type_0 import DriftResponseAlgorithmType0
    from .drift_response_respond import DriftResponseRespond
    from .drift_step import DriftStep
    from .drift_step_figures import DriftStepFigures
    from .drift_step_state import DriftStepState
    from .drop import Drop
    from .ended import Ended
    from .ended_state import EndedState
    from .estimate import Estimate
    from .evaluation_read import EvaluationRead
    from .evaluation_read_request import EvaluationReadRequest
    from .evaluation_report import EvaluationReport
    from .evaluation_report_report import EvaluationReportReport
    from .evaluation_report_request import EvaluationReportRequest
    from .evaluation_request import EvaluationRequest
    from .evaluation_request_agents_item_type_1 import EvaluationRequestAgentsItemType1
    from .evaluation_request_level import EvaluationRequestLevel
    from .execution_read import ExecutionRead
    from .executions import Executions
    from .exogenous_issue import ExogenousIssue
    from .exogenous_point import ExogenousPoint
    from .exogenous_read import ExogenousRead
    from .feature import Feature
    from .finished import Finished
    from .finished_task import FinishedTask
    from .finished_task_state import FinishedTaskState
    from .fit_request import FitRequest
    from .forecast import Forecast
    from .forecast_row import ForecastRow
    from .gain_interval import GainInterval
    from .health import Health
    from .held_out import HeldOut
    from .inference_decision import InferenceDecision
    from .inference_decision_expected_type_0 import InferenceDecisionExpectedType0
    from .inference_decision_expected_type_0_additional_property import (
        InferenceDecisionExpectedType0AdditionalProperty,
    )
    from .inference_decision_quality import InferenceDecisionQuality
    from .inference_decision_servers import InferenceDecisionServers
    from .inference_decision_source import InferenceDecisionSource
    from .inference_decision_waiting import InferenceDecisionWaiting
    from .inference_execution import InferenceExecution
    from .inference_patch import InferencePatch
    from .inference_patch_prices import InferencePatchPrices
    from .inference_patch_qualities import InferencePatchQualities
    from .inference_patch_users import InferencePatchUsers
    from .inference_patch_weights import InferencePatchWeights
    from .inference_report import InferenceReport
    from .inference_spec import InferenceSpec
    from .inference_spec_policies import InferenceSpecPolicies
    from .inference_start import InferenceStart
    from .inference_start_mode import InferenceStartMode
    from .inference_weights import InferenceWeights
    from .interval import Interval
    from .iteration_read import IterationRead
    from .iteration_read_decision_type_1 import IterationReadDecisionType1
    from .iteration_read_report_type_1 import IterationReadReportType1
    from .iteration_report import IterationReport
    from .iteration_report_allocation import IterationReportAllocation
    from .iteration_report_features import IterationReportFeatures
    from .iteration_report_metrics import IterationReportMetrics
    from .iteration_run_start import IterationRunStart
    from .iteration_run_start_features_type_0 import IterationRunStartFeaturesType0
    from .iteration_run_start_mode import IterationRunStartMode
    from .iteration_run_start_probabilities import IterationRunStartProbabilities
    from .iteration_run_start_targets import IterationRunStartTargets
    from .iteration_segment import IterationSegment
    from .iteration_segment_allocation import IterationSegmentAllocation
    from .iterative_patch import IterativePatch
    from .iterative_patch_prices import IterativePatchPrices
    from .iterative_patch_probabilities import IterativePatchProbabilities
    from .iterative_patch_targets import IterativePatchTargets
    from .iterative_patch_weights import IterativePatchWeights
    from .iterative_spec import IterativeSpec
    from .job_change import JobChange
    from .job_change_nodes import JobChangeNodes
    from .job_change_trades import JobChangeTrades
    from .job_queue import JobQueue
    from .job_read import JobRead
    from .job_read_error_type_0 import JobReadErrorType0
    from .job_read_result_type_0 import JobReadResultType0
    from .job_read_state import JobReadState
    from .job_read_type import JobReadType
    from .job_start import JobStart
    from .key_made import KeyMade
    from .key_made_scopes_item import KeyMadeScopesItem
    from .key_read import KeyRead
    from .key_read_scopes_item import KeyReadScopesItem
    from .key_request import KeyRequest
    from .key_request_scopes_item import KeyRequestScopesItem
    from .left_prediction import LeftPrediction
    from .limits import Limits
    from .list_evaluations_sort import ListEvaluationsSort
    from .list_jobs_sort import ListJobsSort
    from .list_jobs_state_type_0 import ListJobsStateType0
    from .list_jobs_type_type_0 import ListJobsTypeType0
    from .list_runs_outcome_type_0_item import ListRunsOutcomeType0Item
    from .list_runs_sort import ListRunsSort
    from .list_runs_state_type_0 import ListRunsStateType0
    from .lost_capacity import LostCapacity
    from .metric import Metric
    from .metric_goal import MetricGoal
    from .metric_scope import MetricScope
    from .model_read import ModelRead
    from .model_read_report import ModelReadReport
    from .monthly_savings import MonthlySavings
    from .monthly_savings_mode import MonthlySavingsMode
    from .node_change import NodeChange
    from .node_class import NodeClass
    from .node_report import NodeReport
    from .node_report_state import NodeReportState
    from .node_steps import NodeSteps
    from .node_type import NodeType
    from .not_granted import NotGranted
    from .not_granted_allocation import NotGrantedAllocation
    from .not_granted_requested import NotGrantedRequested
    from .not_granted_state import NotGrantedState
    from .objective import Objective
    from .online_settings import OnlineSettings
    from .pace_shift import PaceShift
    from .page_agent_read import PageAgentRead
    from .page_audit_read import PageAuditRead
    from .page_evaluation_read import PageEvaluationRead
    from .page_exogenous_read import PageExogenousRead
    from .page_iteration_read import PageIterationRead
    from .page_job_read import PageJobRead
    from .page_key_read import PageKeyRead
    from .page_model_read import PageModelRead
    from .page_promotion_listed import PagePromotionListed
    from .page_run_listed import PageRunListed
    from .page_series_read import PageSeriesRead
    from .page_workload_listed import PageWorkloadListed
    from .parent import Parent
    from .placement import Placement
    from .predicted_metric import PredictedMetric
    from .prediction import Prediction
    from .prediction_allocation import PredictionAllocation
    from .prediction_features import PredictionFeatures
    from .prediction_predicted import PredictionPredicted
    from .problem import Problem
    from .problem_field import ProblemField
    from .progressed import Progressed
    from .promotion_listed import PromotionListed
    from .promotion_listed_figures_type_0 import PromotionListedFiguresType0
    from .promotion_read import PromotionRead
    from .promotion_request import PromotionRequest
    from .promotion_request_require_item import PromotionRequestRequireItem
    from .queue_change import QueueChange
    from .queue_decision import QueueDecision
    from .queue_decision_source import QueueDecisionSource
    from .queue_reason import QueueReason
    from .queue_report import QueueReport
    from .queue_shadow import QueueShadow
    from .queued_task import QueuedTask
    from .readiness import Readiness
    from .readiness_exclude_item import ReadinessExcludeItem
    from .reason import Reason
    from .rejection import Rejection
    from .remark import Remark
    from .report import Report
    from .report_allocation import ReportAllocation
    from .report_features import ReportFeatures
    from .report_metrics import ReportMetrics
    from .report_warning import ReportWarning
    from .requested_allocation import RequestedAllocation
    from .requested_allocation_allocation import RequestedAllocationAllocation
    from .requested_allocation_state import RequestedAllocationState
    from .requests_read import RequestsRead
    from .requests_read_of_users import RequestsReadOfUsers
    from .resource import Resource
    from .response_quality import ResponseQuality
    from .response_quality_shape import ResponseQualityShape
    from .retention import Retention
    from .retention_read import RetentionRead
    from .run_listed import RunListed
    from .run_listed_decision_type_1 import RunListedDecisionType1
    from .run_listed_outcome import RunListedOutcome
    from .run_listed_start import RunListedStart
    from .run_listed_state import RunListedState
    from .run_patch import RunPatch
    from .run_patch_state_type_0 import RunPatchStateType0
    from .run_patch_targets_type_0 import RunPatchTargetsType0
    from .run_read import RunRead
    from .run_read_outcome import RunReadOutcome
    from .run_read_start import RunReadStart
    from .run_read_state import RunReadState
    from .run_start import RunStart
    from .run_start_mode import RunStartMode
    from .run_started import RunStarted
    from .running_task import RunningTask
    from .savings import Savings
    from .scored import Scored
    from .segment_read import SegmentRead
    from .segment_read_allocation import SegmentReadAllocation
    from .series_read import SeriesRead
    from .server_change import ServerChange
    from .server_change_state import ServerChangeState
    from .server_class import ServerClass
    from .shadow_read import ShadowRead
    from .shadow_rule import ShadowRule
    from .shadow_starts import ShadowStarts
    from .shadow_step import ShadowStep
    from .shadow_step_allocation_type_0 import ShadowStepAllocationType0
    from .skipped_lines import SkippedLines
    from .spread import Spread
    from .started import Started
    from .step_prediction import StepPrediction
    from .steps_read import StepsRead
    from .stopped_runs import StoppedRuns
    from .stored_execution import StoredExecution
    from .submitted import Submitted
    from .trace_execution import TraceExecution
    from .trace_read import TraceRead
    from .train_request import TrainRequest
    from .train_request_algorithm import TrainRequestAlgorithm
    from .train_request_device import TrainRequestDevice
    from .train_request_executor import TrainRequestExecutor
    from .train_request_imitate_type_0 import TrainRequestImitateType0
    from .train_request_require_item import TrainRequestRequireItem
    from .upcoming_iteration import UpcomingIteration
    from .upcoming_iteration_features import UpcomingIterationFeatures
    from .upload_read import UploadRead
    from .upload_samples_json_body_type_0 import UploadSamplesJsonBodyType0
    from .upload_samples_json_body_type_0_samples_item import (
        UploadSamplesJsonBodyType0SamplesItem,
    )
    from .upload_samples_json_body_type_0_samples_item_arrivals_item import (
        UploadSamplesJsonBodyType0SamplesItemArrivalsItem,
    )
    from .upload_samples_json_body_type_0_samples_item_curves_item import (
        UploadSamplesJsonBodyType0SamplesItemCurvesItem,
    )
    from .upload_samples_json_body_type_0_samples_item_steps_item import (
        UploadSamplesJsonBodyType0SamplesItemStepsItem,
    )
    from .upload_samples_json_body_type_1 import UploadSamplesJsonBodyType1
    from .upload_samples_json_body_type_1_samples_item import (
        UploadSamplesJsonBodyType1SamplesItem,
    )
    from .upload_samples_json_body_type_1_samples_item_batches_item import (
        UploadSamplesJsonBodyType1SamplesItemBatchesItem,
    )
    from .upload_samples_json_body_type_1_samples_item_requests_item import (
        UploadSamplesJsonBodyType1SamplesItemRequestsItem,
    )
    from .upload_samples_json_body_type_2 import UploadSamplesJsonBodyType2
    from .upload_samples_json_body_type_2_samples_item import (
        UploadSamplesJsonBodyType2SamplesItem,
    )
    from .upload_samples_json_body_type_2_samples_item_reports_item import (
        UploadSamplesJsonBodyType2SamplesItemReportsItem,
    )
    from .upload_samples_json_body_type_2_samples_item_reports_item_allocation import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation,
    )
    from .upload_samples_json_body_type_2_samples_item_reports_item_features import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures,
    )
    from .upload_samples_json_body_type_2_samples_item_reports_item_metrics import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics,
    )
    from .upload_samples_json_body_type_2_samples_item_reports_item_segments_item import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem,
    )
    from .upload_samples_json_body_type_2_samples_item_reports_item_segments_item_allocation import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation,
    )
    from .user import User
    from .variant import Variant
    from .verdict import Verdict
    from .verdict_level_type_0 import VerdictLevelType0
    from .weights import Weights
    from .workflow_patch import WorkflowPatch
    from .workflow_patch_prices import WorkflowPatchPrices
    from .workflow_patch_weights import WorkflowPatchWeights
    from .workflow_plan import WorkflowPlan
    from .workflow_spec import WorkflowSpec
    from .workflow_spec_backfill_order_type_0 import WorkflowSpecBackfillOrderType0
    from .workflow_spec_backfilling import WorkflowSpecBackfilling
    from .workload_listed import WorkloadListed
    from .workload_listed_champions import WorkloadListedChampions
    from .workload_listed_spec_type_1 import WorkloadListedSpecType1
    from .workload_read import WorkloadRead
    from .workload_read_champions import WorkloadReadChampions
    from .workload_savings import WorkloadSavings

_MODULES = {
    "AdaptationRead": "adaptation_read",
    "AdaptationReadState": "adaptation_read_state",
    "AgentRead": "agent_read",
    "AgentReadReport": "agent_read_report",
    "AgentReadStanding": "agent_read_standing",
    "AgentReadStatus": "agent_read_status",
    "ArrivalsRead": "arrivals_read",
    "ArrivalsReadOfQueues": "arrivals_read_of_queues",
    "Arrived": "arrived",
    "AuditRead": "audit_read",
    "AuditReadDetailType0": "audit_read_detail_type_0",
    "BackfillWindow": "backfill_window",
    "BatchPrediction": "batch_prediction",
    "BatchPredictionArrivalsType0": "batch_prediction_arrivals_type_0",
    "BatchStart": "batch_start",
    "BatchesRead": "batches_read",
    "CapUse": "cap_use",
    "CapUseOf": "cap_use_of",
    "CapUseScope": "cap_use_scope",
    "CapUseState": "cap_use_state",
    "Caps": "caps",
    "CapsRead": "caps_read",
    "ClusterDecision": "cluster_decision",
    "ClusterDecisionSource": "cluster_decision_source",
    "ClusterExecution": "cluster_execution",
    "ClusterPatch": "cluster_patch",
    "ClusterPatchPrices": "cluster_patch_prices",
    "ClusterPatchQueues": "cluster_patch_queues",
    "ClusterPatchWeights": "cluster_patch_weights",
    "ClusterPrediction": "cluster_prediction",
    "ClusterReport": "cluster_report",
    "ClusterSpec": "cluster_spec",
    "ClusterStart": "cluster_start",
    "ClusterStartMode": "cluster_start_mode",
    "ClusterWeights": "cluster_weights",
    "Comparison": "comparison",
    "ComparisonAllocationType0": "comparison_allocation_type_0",
    "Contingency": "contingency",
    "ContingencyAllocation": "contingency_allocation",
    "Convergence": "convergence",
    "Count": "count",
    "Criterion": "criterion",
    "CurvesRead": "curves_read",
    "Decision": "decision",
    "DecisionAllocation": "decision_allocation",
    "DecisionChances": "decision_chances",
    "DecisionDelta": "decision_delta",
    "DecisionPredicted": "decision_predicted",
    "DecisionReason": "decision_reason",
    "DecisionSource": "decision_source",
    "Disturbances": "disturbances",
    "DriftNotice": "drift_notice",
    "DriftNoticeDirection": "drift_notice_direction",
    "DriftRead": "drift_read",
    "DriftResponse": "drift_response",
    "DriftResponseAlgorithmType0": "drift_response_algorithm_type_0",
    "DriftResponseRespond": "drift_response_respond",
    "DriftStep": "drift_step",
    "DriftStepFigures": "drift_step_figures",
    "DriftStepState": "drift_step_state",
    "Drop": "drop",
    "Ended": "ended",
    "EndedState": "ended_state",
    "Estimate": "estimate",
    "EvaluationRead": "evaluation_read",
    "EvaluationReadRequest": "evaluation_read_request",
    "EvaluationReport": "evaluation_report",
    "EvaluationReportReport": "evaluation_report_report",
    "EvaluationReportRequest": "evaluation_report_request",
    "EvaluationRequest": "evaluation_request",
    "EvaluationRequestAgentsItemType1": "evaluation_request_agents_item_type_1",
    "EvaluationRequestLevel": "evaluation_request_level",
    "ExecutionRead": "execution_read",
    "Executions": "executions",
    "ExogenousIssue": "exogenous_issue",
    "ExogenousPoint": "exogenous_point",
    "ExogenousRead": "exogenous_read",
    "Feature": "feature",
    "Finished": "finished",
    "FinishedTask": "finished_task",
    "FinishedTaskState": "finished_task_state",
    "FitRequest": "fit_request",
    "Forecast": "forecast",
    "ForecastRow": "forecast_row",
    "GainInterval": "gain_interval",
    "Health": "health",
    "HeldOut": "held_out",
    "InferenceDecision": "inference_decision",
    "InferenceDecisionExpectedType0": "inference_decision_expected_type_0",
    "InferenceDecisionExpectedType0AdditionalProperty": "inference_decision_expected_type_0_additional_property",
    "InferenceDecisionQuality": "inference_decision_quality",
    "InferenceDecisionServers": "inference_decision_servers",
    "InferenceDecisionSource": "inference_decision_source",
    "InferenceDecisionWaiting": "inference_decision_waiting",
    "InferenceExecution": "inference_execution",
    "InferencePatch": "inference_patch",
    "InferencePatchPrices": "inference_patch_prices",
    "InferencePatchQualities": "inference_patch_qualities",
    "InferencePatchUsers": "inference_patch_users",
    "InferencePatchWeights": "inference_patch_weights",
    "InferenceReport": "inference_report",
    "InferenceSpec": "inference_spec",
    "InferenceSpecPolicies": "inference_spec_policies",
    "InferenceStart": "inference_start",
    "InferenceStartMode": "inference_start_mode",
    "InferenceWeights": "inference_weights",
    "Interval": "interval",
    "IterationRead": "iteration_read",
    "IterationReadDecisionType1": "iteration_read_decision_type_1",
    "IterationReadReportType1": "iteration_read_report_type_1",
    "IterationReport": "iteration_report",
    "IterationReportAllocation": "iteration_report_allocation",
    "IterationReportFeatures": "iteration_report_features",
    "IterationReportMetrics": "iteration_report_metrics",
    "IterationRunStart": "iteration_run_start",
    "IterationRunStartFeaturesType0": "iteration_run_start_features_type_0",
    "IterationRunStartMode": "iteration_run_start_mode",
    "IterationRunStartProbabilities": "iteration_run_start_probabilities",
    "IterationRunStartTargets": "iteration_run_start_targets",
    "IterationSegment": "iteration_segment",
    "IterationSegmentAllocation": "iteration_segment_allocation",
    "IterativePatch": "iterative_patch",
    "IterativePatchPrices": "iterative_patch_prices",
    "IterativePatchProbabilities": "iterative_patch_probabilities",
    "IterativePatchTargets": "iterative_patch_targets",
    "IterativePatchWeights": "iterative_patch_weights",
    "IterativeSpec": "iterative_spec",
    "JobChange": "job_change",
    "JobChangeNodes": "job_change_nodes",
    "JobChangeTrades": "job_change_trades",
    "JobQueue": "job_queue",
    "JobRead": "job_read",
    "JobReadErrorType0": "job_read_error_type_0",
    "JobReadResultType0": "job_read_result_type_0",
    "JobReadState": "job_read_state",
    "JobReadType": "job_read_type",
    "JobStart": "job_start",
    "KeyMade": "key_made",
    "KeyMadeScopesItem": "key_made_scopes_item",
    "KeyRead": "key_read",
    "KeyReadScopesItem": "key_read_scopes_item",
    "KeyRequest": "key_request",
    "KeyRequestScopesItem": "key_request_scopes_item",
    "LeftPrediction": "left_prediction",
    "Limits": "limits",
    "ListEvaluationsSort": "list_evaluations_sort",
    "ListJobsSort": "list_jobs_sort",
    "ListJobsStateType0": "list_jobs_state_type_0",
    "ListJobsTypeType0": "list_jobs_type_type_0",
    "ListRunsOutcomeType0Item": "list_runs_outcome_type_0_item",
    "ListRunsSort": "list_runs_sort",
    "ListRunsStateType0": "list_runs_state_type_0",
    "LostCapacity": "lost_capacity",
    "Metric": "metric",
    "MetricGoal": "metric_goal",
    "MetricScope": "metric_scope",
    "ModelRead": "model_read",
    "ModelReadReport": "model_read_report",
    "MonthlySavings": "monthly_savings",
    "MonthlySavingsMode": "monthly_savings_mode",
    "NodeChange": "node_change",
    "NodeClass": "node_class",
    "NodeReport": "node_report",
    "NodeReportState": "node_report_state",
    "NodeSteps": "node_steps",
    "NodeType": "node_type",
    "NotGranted": "not_granted",
    "NotGrantedAllocation": "not_granted_allocation",
    "NotGrantedRequested": "not_granted_requested",
    "NotGrantedState": "not_granted_state",
    "Objective": "objective",
    "OnlineSettings": "online_settings",
    "PaceShift": "pace_shift",
    "PageAgentRead": "page_agent_read",
    "PageAuditRead": "page_audit_read",
    "PageEvaluationRead": "page_evaluation_read",
    "PageExogenousRead": "page_exogenous_read",
    "PageIterationRead": "page_iteration_read",
    "PageJobRead": "page_job_read",
    "PageKeyRead": "page_key_read",
    "PageModelRead": "page_model_read",
    "PagePromotionListed": "page_promotion_listed",
    "PageRunListed": "page_run_listed",
    "PageSeriesRead": "page_series_read",
    "PageWorkloadListed": "page_workload_listed",
    "Parent": "parent",
    "Placement": "placement",
    "PredictedMetric": "predicted_metric",
    "Prediction": "prediction",
    "PredictionAllocation": "prediction_allocation",
    "PredictionFeatures": "prediction_features",
    "PredictionPredicted": "prediction_predicted",
    "Problem": "problem",
    "ProblemField": "problem_field",
    "Progressed": "progressed",
    "PromotionListed": "promotion_listed",
    "PromotionListedFiguresType0": "promotion_listed_figures_type_0",
    "PromotionRead": "promotion_read",
    "PromotionRequest": "promotion_request",
    "PromotionRequestRequireItem": "promotion_request_require_item",
    "QueueChange": "queue_change",
    "QueueDecision": "queue_decision",
    "QueueDecisionSource": "queue_decision_source",
    "QueueReason": "queue_reason",
    "QueueReport": "queue_report",
    "QueueShadow": "queue_shadow",
    "QueuedTask": "queued_task",
    "Readiness": "readiness",
    "ReadinessExcludeItem": "readiness_exclude_item",
    "Reason": "reason",
    "Rejection": "rejection",
    "Remark": "remark",
    "Report": "report",
    "ReportAllocation": "report_allocation",
    "ReportFeatures": "report_features",
    "ReportMetrics": "report_metrics",
    "ReportWarning": "report_warning",
    "RequestedAllocation": "requested_allocation",
    "RequestedAllocationAllocation": "requested_allocation_allocation",
    "RequestedAllocationState": "requested_allocation_state",
    "RequestsRead": "requests_read",
    "RequestsReadOfUsers": "requests_read_of_users",
    "Resource": "resource",
    "ResponseQuality": "response_quality",
    "ResponseQualityShape": "response_quality_shape",
    "Retention": "retention",
    "RetentionRead": "retention_read",
    "RunListed": "run_listed",
    "RunListedDecisionType1": "run_listed_decision_type_1",
    "RunListedOutcome": "run_listed_outcome",
    "RunListedStart": "run_listed_start",
    "RunListedState": "run_listed_state",
    "RunPatch": "run_patch",
    "RunPatchStateType0": "run_patch_state_type_0",
    "RunPatchTargetsType0": "run_patch_targets_type_0",
    "RunRead": "run_read",
    "RunReadOutcome": "run_read_outcome",
    "RunReadStart": "run_read_start",
    "RunReadState": "run_read_state",
    "RunStart": "run_start",
    "RunStartMode": "run_start_mode",
    "RunStarted": "run_started",
    "RunningTask": "running_task",
    "Savings": "savings",
    "Scored": "scored",
    "SegmentRead": "segment_read",
    "SegmentReadAllocation": "segment_read_allocation",
    "SeriesRead": "series_read",
    "ServerChange": "server_change",
    "ServerChangeState": "server_change_state",
    "ServerClass": "server_class",
    "ShadowRead": "shadow_read",
    "ShadowRule": "shadow_rule",
    "ShadowStarts": "shadow_starts",
    "ShadowStep": "shadow_step",
    "ShadowStepAllocationType0": "shadow_step_allocation_type_0",
    "SkippedLines": "skipped_lines",
    "Spread": "spread",
    "Started": "started",
    "StepPrediction": "step_prediction",
    "StepsRead": "steps_read",
    "StoppedRuns": "stopped_runs",
    "StoredExecution": "stored_execution",
    "Submitted": "submitted",
    "TraceExecution": "trace_execution",
    "TraceRead": "trace_read",
    "TrainRequest": "train_request",
    "TrainRequestAlgorithm": "train_request_algorithm",
    "TrainRequestDevice": "train_request_device",
    "TrainRequestExecutor": "train_request_executor",
    "TrainRequestImitateType0": "train_request_imitate_type_0",
    "TrainRequestRequireItem": "train_request_require_item",
    "UpcomingIteration": "upcoming_iteration",
    "UpcomingIterationFeatures": "upcoming_iteration_features",
    "UploadRead": "upload_read",
    "UploadSamplesJsonBodyType0": "upload_samples_json_body_type_0",
    "UploadSamplesJsonBodyType0SamplesItem": "upload_samples_json_body_type_0_samples_item",
    "UploadSamplesJsonBodyType0SamplesItemArrivalsItem": "upload_samples_json_body_type_0_samples_item_arrivals_item",
    "UploadSamplesJsonBodyType0SamplesItemCurvesItem": "upload_samples_json_body_type_0_samples_item_curves_item",
    "UploadSamplesJsonBodyType0SamplesItemStepsItem": "upload_samples_json_body_type_0_samples_item_steps_item",
    "UploadSamplesJsonBodyType1": "upload_samples_json_body_type_1",
    "UploadSamplesJsonBodyType1SamplesItem": "upload_samples_json_body_type_1_samples_item",
    "UploadSamplesJsonBodyType1SamplesItemBatchesItem": "upload_samples_json_body_type_1_samples_item_batches_item",
    "UploadSamplesJsonBodyType1SamplesItemRequestsItem": "upload_samples_json_body_type_1_samples_item_requests_item",
    "UploadSamplesJsonBodyType2": "upload_samples_json_body_type_2",
    "UploadSamplesJsonBodyType2SamplesItem": "upload_samples_json_body_type_2_samples_item",
    "UploadSamplesJsonBodyType2SamplesItemReportsItem": "upload_samples_json_body_type_2_samples_item_reports_item",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation": "upload_samples_json_body_type_2_samples_item_reports_item_allocation",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures": "upload_samples_json_body_type_2_samples_item_reports_item_features",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics": "upload_samples_json_body_type_2_samples_item_reports_item_metrics",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem": "upload_samples_json_body_type_2_samples_item_reports_item_segments_item",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation": "upload_samples_json_body_type_2_samples_item_reports_item_segments_item_allocation",
    "User": "user",
    "Variant": "variant",
    "Verdict": "verdict",
    "VerdictLevelType0": "verdict_level_type_0",
    "Weights": "weights",
    "WorkflowPatch": "workflow_patch",
    "WorkflowPatchPrices": "workflow_patch_prices",
    "WorkflowPatchWeights": "workflow_patch_weights",
    "WorkflowPlan": "workflow_plan",
    "WorkflowSpec": "workflow_spec",
    "WorkflowSpecBackfillOrderType0": "workflow_spec_backfill_order_type_0",
    "WorkflowSpecBackfilling": "workflow_spec_backfilling",
    "WorkloadListed": "workload_listed",
    "WorkloadListedChampions": "workload_listed_champions",
    "WorkloadListedSpecType1": "workload_listed_spec_type_1",
    "WorkloadRead": "workload_read",
    "WorkloadReadChampions": "workload_read_champions",
    "WorkloadSavings": "workload_savings",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module("." + _MODULES[name], __name__), name)
    return found


__all__ = (
    "AdaptationRead",
    "AdaptationReadState",
    "AgentRead",
    "AgentReadReport",
    "AgentReadStanding",
    "AgentReadStatus",
    "ArrivalsRead",
    "ArrivalsReadOfQueues",
    "Arrived",
    "AuditRead",
    "AuditReadDetailType0",
    "BackfillWindow",
    "BatchesRead",
    "BatchPrediction",
    "BatchPredictionArrivalsType0",
    "BatchStart",
    "Caps",
    "CapsRead",
    "CapUse",
    "CapUseOf",
    "CapUseScope",
    "CapUseState",
    "ClusterDecision",
    "ClusterDecisionSource",
    "ClusterExecution",
    "ClusterPatch",
    "ClusterPatchPrices",
    "ClusterPatchQueues",
    "ClusterPatchWeights",
    "ClusterPrediction",
    "ClusterReport",
    "ClusterSpec",
    "ClusterStart",
    "ClusterStartMode",
    "ClusterWeights",
    "Comparison",
    "ComparisonAllocationType0",
    "Contingency",
    "ContingencyAllocation",
    "Convergence",
    "Count",
    "Criterion",
    "CurvesRead",
    "Decision",
    "DecisionAllocation",
    "DecisionChances",
    "DecisionDelta",
    "DecisionPredicted",
    "DecisionReason",
    "DecisionSource",
    "Disturbances",
    "DriftNotice",
    "DriftNoticeDirection",
    "DriftRead",
    "DriftResponse",
    "DriftResponseAlgorithmType0",
    "DriftResponseRespond",
    "DriftStep",
    "DriftStepFigures",
    "DriftStepState",
    "Drop",
    "Ended",
    "EndedState",
    "Estimate",
    "EvaluationRead",
    "EvaluationReadRequest",
    "EvaluationReport",
    "EvaluationReportReport",
    "EvaluationReportRequest",
    "EvaluationRequest",
    "EvaluationRequestAgentsItemType1",
    "EvaluationRequestLevel",
    "ExecutionRead",
    "Executions",
    "ExogenousIssue",
    "ExogenousPoint",
    "ExogenousRead",
    "Feature",
    "Finished",
    "FinishedTask",
    "FinishedTaskState",
    "FitRequest",
    "Forecast",
    "ForecastRow",
    "GainInterval",
    "Health",
    "HeldOut",
    "InferenceDecision",
    "InferenceDecisionExpectedType0",
    "InferenceDecisionExpectedType0AdditionalProperty",
    "InferenceDecisionQuality",
    "InferenceDecisionServers",
    "InferenceDecisionSource",
    "InferenceDecisionWaiting",
    "InferenceExecution",
    "InferencePatch",
    "InferencePatchPrices",
    "InferencePatchQualities",
    "InferencePatchUsers",
    "InferencePatchWeights",
    "InferenceReport",
    "InferenceSpec",
    "InferenceSpecPolicies",
    "InferenceStart",
    "InferenceStartMode",
    "InferenceWeights",
    "Interval",
    "IterationRead",
    "IterationReadDecisionType1",
    "IterationReadReportType1",
    "IterationReport",
    "IterationReportAllocation",
    "IterationReportFeatures",
    "IterationReportMetrics",
    "IterationRunStart",
    "IterationRunStartFeaturesType0",
    "IterationRunStartMode",
    "IterationRunStartProbabilities",
    "IterationRunStartTargets",
    "IterationSegment",
    "IterationSegmentAllocation",
    "IterativePatch",
    "IterativePatchPrices",
    "IterativePatchProbabilities",
    "IterativePatchTargets",
    "IterativePatchWeights",
    "IterativeSpec",
    "JobChange",
    "JobChangeNodes",
    "JobChangeTrades",
    "JobQueue",
    "JobRead",
    "JobReadErrorType0",
    "JobReadResultType0",
    "JobReadState",
    "JobReadType",
    "JobStart",
    "KeyMade",
    "KeyMadeScopesItem",
    "KeyRead",
    "KeyReadScopesItem",
    "KeyRequest",
    "KeyRequestScopesItem",
    "LeftPrediction",
    "Limits",
    "ListEvaluationsSort",
    "ListJobsSort",
    "ListJobsStateType0",
    "ListJobsTypeType0",
    "ListRunsOutcomeType0Item",
    "ListRunsSort",
    "ListRunsStateType0",
    "LostCapacity",
    "Metric",
    "MetricGoal",
    "MetricScope",
    "ModelRead",
    "ModelReadReport",
    "MonthlySavings",
    "MonthlySavingsMode",
    "NodeChange",
    "NodeClass",
    "NodeReport",
    "NodeReportState",
    "NodeSteps",
    "NodeType",
    "NotGranted",
    "NotGrantedAllocation",
    "NotGrantedRequested",
    "NotGrantedState",
    "Objective",
    "OnlineSettings",
    "PaceShift",
    "PageAgentRead",
    "PageAuditRead",
    "PageEvaluationRead",
    "PageExogenousRead",
    "PageIterationRead",
    "PageJobRead",
    "PageKeyRead",
    "PageModelRead",
    "PagePromotionListed",
    "PageRunListed",
    "PageSeriesRead",
    "PageWorkloadListed",
    "Parent",
    "Placement",
    "PredictedMetric",
    "Prediction",
    "PredictionAllocation",
    "PredictionFeatures",
    "PredictionPredicted",
    "Problem",
    "ProblemField",
    "Progressed",
    "PromotionListed",
    "PromotionListedFiguresType0",
    "PromotionRead",
    "PromotionRequest",
    "PromotionRequestRequireItem",
    "QueueChange",
    "QueueDecision",
    "QueueDecisionSource",
    "QueuedTask",
    "QueueReason",
    "QueueReport",
    "QueueShadow",
    "Readiness",
    "ReadinessExcludeItem",
    "Reason",
    "Rejection",
    "Remark",
    "Report",
    "ReportAllocation",
    "ReportFeatures",
    "ReportMetrics",
    "ReportWarning",
    "RequestedAllocation",
    "RequestedAllocationAllocation",
    "RequestedAllocationState",
    "RequestsRead",
    "RequestsReadOfUsers",
    "Resource",
    "ResponseQuality",
    "ResponseQualityShape",
    "Retention",
    "RetentionRead",
    "RunListed",
    "RunListedDecisionType1",
    "RunListedOutcome",
    "RunListedStart",
    "RunListedState",
    "RunningTask",
    "RunPatch",
    "RunPatchStateType0",
    "RunPatchTargetsType0",
    "RunRead",
    "RunReadOutcome",
    "RunReadStart",
    "RunReadState",
    "RunStart",
    "RunStarted",
    "RunStartMode",
    "Savings",
    "Scored",
    "SegmentRead",
    "SegmentReadAllocation",
    "SeriesRead",
    "ServerChange",
    "ServerChangeState",
    "ServerClass",
    "ShadowRead",
    "ShadowRule",
    "ShadowStarts",
    "ShadowStep",
    "ShadowStepAllocationType0",
    "SkippedLines",
    "Spread",
    "Started",
    "StepPrediction",
    "StepsRead",
    "StoppedRuns",
    "StoredExecution",
    "Submitted",
    "TraceExecution",
    "TraceRead",
    "TrainRequest",
    "TrainRequestAlgorithm",
    "TrainRequestDevice",
    "TrainRequestExecutor",
    "TrainRequestImitateType0",
    "TrainRequestRequireItem",
    "UpcomingIteration",
    "UpcomingIterationFeatures",
    "UploadRead",
    "UploadSamplesJsonBodyType0",
    "UploadSamplesJsonBodyType0SamplesItem",
    "UploadSamplesJsonBodyType0SamplesItemArrivalsItem",
    "UploadSamplesJsonBodyType0SamplesItemCurvesItem",
    "UploadSamplesJsonBodyType0SamplesItemStepsItem",
    "UploadSamplesJsonBodyType1",
    "UploadSamplesJsonBodyType1SamplesItem",
    "UploadSamplesJsonBodyType1SamplesItemBatchesItem",
    "UploadSamplesJsonBodyType1SamplesItemRequestsItem",
    "UploadSamplesJsonBodyType2",
    "UploadSamplesJsonBodyType2SamplesItem",
    "UploadSamplesJsonBodyType2SamplesItemReportsItem",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem",
    "UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation",
    "User",
    "Variant",
    "Verdict",
    "VerdictLevelType0",
    "Weights",
    "WorkflowPatch",
    "WorkflowPatchPrices",
    "WorkflowPatchWeights",
    "WorkflowPlan",
    "WorkflowSpec",
    "WorkflowSpecBackfilling",
    "WorkflowSpecBackfillOrderType0",
    "WorkloadListed",
    "WorkloadListedChampions",
    "WorkloadListedSpecType1",
    "WorkloadRead",
    "WorkloadReadChampions",
    "WorkloadSavings",
)
