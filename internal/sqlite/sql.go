package sqlite

import _ "embed"

var (
	//go:embed sql/meta.sql
	sqlMeta string
	//go:embed sql/meta_create.sql
	sqlMetaCreate string

	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/meta_change.sql
	sqlMetaChange string

	//go:embed sql/tree_add.sql
	sqlTreeAdd string
	//go:embed sql/tree_leaf.sql
	sqlTreeLeaf string
	//go:embed sql/tree_tip.sql
	sqlTreeTip string

	//go:embed sql/content.sql
	sqlContent string
	//go:embed sql/content_keep.sql
	sqlContentKeep string

	//go:embed sql/task.sql
	sqlTask string
	//go:embed sql/tasks.sql
	sqlTasks string
	//go:embed sql/tasks_in.sql
	sqlTasksIn string
	//go:embed sql/task_create.sql
	sqlTaskCreate string
	//go:embed sql/task_change.sql
	sqlTaskChange string

	//go:embed sql/approval.sql
	sqlApproval string
	//go:embed sql/approval_latest.sql
	sqlApprovalLatest string
	//go:embed sql/approvals.sql
	sqlApprovals string
	//go:embed sql/approvals_of_task.sql
	sqlApprovalsOfTask string
	//go:embed sql/approval_seq.sql
	sqlApprovalSeq string
	//go:embed sql/approvals_in.sql
	sqlApprovalsIn string
	//go:embed sql/approvals_in_task.sql
	sqlApprovalsInTask string
	//go:embed sql/approvals_waiting.sql
	sqlApprovalsWaiting string
	//go:embed sql/approvals_waiting_in_task.sql
	sqlApprovalsWaitingInTask string
	//go:embed sql/approvals_unsettled.sql
	sqlApprovalsUnsettled string
	//go:embed sql/approvals_unsettled_of_task.sql
	sqlApprovalsUnsettledOfTask string
	//go:embed sql/pending.sql
	sqlPending string
	//go:embed sql/approval_create.sql
	sqlApprovalCreate string
	//go:embed sql/approval_change.sql
	sqlApprovalChange string

	//go:embed sql/operation.sql
	sqlOperation string
	//go:embed sql/operation_by_id.sql
	sqlOperationByID string
	//go:embed sql/open.sql
	sqlOpen string
	//go:embed sql/operations.sql
	sqlOperations string
	//go:embed sql/operations_of_task.sql
	sqlOperationsOfTask string
	//go:embed sql/operations_open.sql
	sqlOperationsOpen string
	//go:embed sql/operations_open_of_task.sql
	sqlOperationsOpenOfTask string
	//go:embed sql/operation_create.sql
	sqlOperationCreate string
	//go:embed sql/operation_change.sql
	sqlOperationChange string

	//go:embed sql/record_exists.sql
	sqlRecordExists string
	//go:embed sql/records.sql
	sqlRecords string
	//go:embed sql/records_of_task.sql
	sqlRecordsOfTask string
	//go:embed sql/record_create.sql
	sqlRecordCreate string

	//go:embed sql/entries.sql
	sqlEntries string
	//go:embed sql/entries_from.sql
	sqlEntriesFrom string
	//go:embed sql/entries_of_task.sql
	sqlEntriesOfTask string
	//go:embed sql/entry.sql
	sqlEntry string
	//go:embed sql/entries_kind.sql
	sqlEntriesKind string
	//go:embed sql/entries_kind_of_task.sql
	sqlEntriesKindOfTask string
	//go:embed sql/entry_last.sql
	sqlEntryLast string
	//go:embed sql/entry_create.sql
	sqlEntryCreate string
)
