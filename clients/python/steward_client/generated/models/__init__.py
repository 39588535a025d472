"""Contains all the data models used in inputs/outputs"""

from .adaptation_read import AdaptationRead
from .adaptation_read_state import AdaptationReadState
from .agent_read import AgentRead
from .agent_read_report import AgentReadReport
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
from .cluster_weights import ClusterWeights
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
from .iteration_run_start_probabilities import IterationRunStartProbabilities
from .iteration_run_start_targets import IterationRunStartTargets
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
from .key_made import KeyMade
from .key_made_scopes_item import KeyMadeScopesItem
from .key_read import KeyRead
from .key_read_scopes_item import KeyReadScopesItem
from .key_request import KeyRequest
from .key_request_scopes_item import KeyRequestScopesItem
from .left_prediction import LeftPrediction
from .limits import Limits
from .list_jobs_state_type_0 import ListJobsStateType0
from .list_runs_state_type_0 import ListRunsStateType0
from .lost_capacity import LostCapacity
from .metric import Metric
from .metric_goal import MetricGoal
from .metric_scope import MetricScope
from .model_read import ModelRead
from .model_read_report import ModelReadReport
from .node_change import NodeChange
from .node_class import NodeClass
from .node_report import NodeReport
from .node_report_state import NodeReportState
from .node_steps import NodeSteps
from .node_type import NodeType
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
from .requests_read import RequestsRead
from .requests_read_of_users import RequestsReadOfUsers
from .resource import Resource
from .response_quality import ResponseQuality
from .response_quality_shape import ResponseQualityShape
from .retention import Retention
from .retention_read import RetentionRead
from .run_listed import RunListed
from .run_listed_decision_type_1 import RunListedDecisionType1
from .run_listed_start import RunListedStart
from .run_listed_state import RunListedState
from .run_patch import RunPatch
from .run_patch_state import RunPatchState
from .run_read import RunRead
from .run_read_start import RunReadStart
from .run_read_state import RunReadState
from .run_start import RunStart
from .run_started import RunStarted
from .running_task import RunningTask
from .scored import Scored
from .series_read import SeriesRead
from .server_change import ServerChange
from .server_change_state import ServerChangeState
from .server_class import ServerClass
from .shadow_read import ShadowRead
from .shadow_rule import ShadowRule
from .shadow_starts import ShadowStarts
from .shadow_step import ShadowStep
from .shadow_step_allocation_type_0 import ShadowStepAllocationType0
from .shift import Shift
from .shift_factors import ShiftFactors
from .skipped_lines import SkippedLines
from .spread import Spread
from .started import Started
from .step_prediction import StepPrediction
from .steps_read import StepsRead
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
from .workflow_spec_backfill_order import WorkflowSpecBackfillOrder
from .workflow_spec_backfilling import WorkflowSpecBackfilling
from .workload_listed import WorkloadListed
from .workload_listed_champions import WorkloadListedChampions
from .workload_listed_spec_type_1 import WorkloadListedSpecType1
from .workload_read import WorkloadRead
from .workload_read_champions import WorkloadReadChampions

__all__ = (
    "AdaptationRead",
    "AdaptationReadState",
    "AgentRead",
    "AgentReadReport",
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
    "ClusterWeights",
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
    "IterationRunStartProbabilities",
    "IterationRunStartTargets",
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
    "KeyMade",
    "KeyMadeScopesItem",
    "KeyRead",
    "KeyReadScopesItem",
    "KeyRequest",
    "KeyRequestScopesItem",
    "LeftPrediction",
    "Limits",
    "ListJobsStateType0",
    "ListRunsStateType0",
    "LostCapacity",
    "Metric",
    "MetricGoal",
    "MetricScope",
    "ModelRead",
    "ModelReadReport",
    "NodeChange",
    "NodeClass",
    "NodeReport",
    "NodeReportState",
    "NodeSteps",
    "NodeType",
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
    "RequestsRead",
    "RequestsReadOfUsers",
    "Resource",
    "ResponseQuality",
    "ResponseQualityShape",
    "Retention",
    "RetentionRead",
    "RunListed",
    "RunListedDecisionType1",
    "RunListedStart",
    "RunListedState",
    "RunningTask",
    "RunPatch",
    "RunPatchState",
    "RunRead",
    "RunReadStart",
    "RunReadState",
    "RunStart",
    "RunStarted",
    "Scored",
    "SeriesRead",
    "ServerChange",
    "ServerChangeState",
    "ServerClass",
    "ShadowRead",
    "ShadowRule",
    "ShadowStarts",
    "ShadowStep",
    "ShadowStepAllocationType0",
    "Shift",
    "ShiftFactors",
    "SkippedLines",
    "Spread",
    "Started",
    "StepPrediction",
    "StepsRead",
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
    "WorkflowSpecBackfillOrder",
    "WorkloadListed",
    "WorkloadListedChampions",
    "WorkloadListedSpecType1",
    "WorkloadRead",
    "WorkloadReadChampions",
)
