package journal

import (
	"context"
	"fmt"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/merkle"
)

// OPAEvent is a decision as an event of OPA's decision log, for what reads those.
type OPAEvent struct {
	Labels      map[string]string    `json:"labels"`
	DecisionID  string               `json:"decision_id"`
	Bundles     map[string]OPABundle `json:"bundles"`
	Path        string               `json:"path"`
	Input       ijson.Raw            `json:"input"`
	Result      ijson.Raw            `json:"result"`
	RequestedBy string               `json:"requested_by"`
	Timestamp   string               `json:"timestamp"`
	Custom      OPACustom            `json:"custom"`
}

// OPABundle says which policy decided.
type OPABundle struct {
	Revision string `json:"revision"`
}

// OPACustom is what OPA has no member for. Status is what the caller got, which running an allowed call decides; of a call of
// an outside tool it is StatusStarted as long as no outcome is on record.
type OPACustom struct {
	Tenant      string          `json:"tenant"`
	Task        string          `json:"task"`
	Step        int             `json:"step"`
	CallID      *string         `json:"call_id"`
	Door        string          `json:"door"`
	Status      dispatch.Status `json:"status"`
	Approval    string          `json:"approval,omitzero"`
	InputDigest string          `json:"input_digest"`
	Sealed      bool            `json:"sealed,omitzero"` // sensitive values in the input have seals in their place
	Detail      string          `json:"detail,omitzero"`
}

// opaPath is the rule that decides, as OPA's API names it.
const opaPath = "policy/decision"

// OPALog makes events of the decisions of one log.
type OPALog struct {
	log     merkle.Log
	source  Source
	version string
	id      string
}

// NewOPALog is for a log, whose entries the source has too, and the version of the govern that reads it.
func NewOPALog(log merkle.Log, s Source, version string) *OPALog {
	return &OPALog{log: log, source: s, version: version}
}

// identify finds what tells the log from others: its first entry, which stays the first.
func (l *OPALog) identify(ctx context.Context) error {
	if l.id != "" {
		return nil
	}
	first, err := l.log.Hashes(ctx, []int64{merkle.LeafNode(0)})
	if err == nil {
		l.id = uuid(fmt.Sprintf("%x", first[0][:]))
	}
	return err
}

// Event gives the event of an entry of KindDecision.
func (l *OPALog) Event(ctx context.Context, e dispatch.Entry) (OPAEvent, error) {
	if err := l.identify(ctx); err != nil {
		return OPAEvent{}, err
	}
	return decode(e, func(d dispatch.DecisionEntry) (OPAEvent, error) {
		key, err := ijson.Marshal([]any{l.id, d.Tenant, d.Task, d.Step, d.N})
		if err != nil {
			return OPAEvent{}, err
		}
		if d.Started != nil {
			o, err := outcomeOf(ctx, l.source, d.EntryHeader)
			if err != nil {
				return OPAEvent{}, err
			}
			if o != nil {
				d.Status, d.Detail = o.Status, o.Detail
			}
		}
		result, _ := ijson.Lookup(e.Body, "/decision")
		return OPAEvent{
			Labels:     map[string]string{"app": "govern", "id": l.id, "version": l.version},
			DecisionID: uuid(ijson.Digest("govern decision id v1", key)),
			Bundles:    map[string]OPABundle{"govern": {d.Decision.PolicyVersion}},
			Path:       opaPath, Input: d.Input, Result: result, RequestedBy: d.Actor, Timestamp: d.Time,
			Custom: OPACustom{Tenant: d.Tenant, Task: d.Task, Step: d.Step, CallID: d.CallID, Door: d.Door, Status: d.Status,
				Approval: d.Approval, InputDigest: d.InputDigest, Sealed: d.Sealed, Detail: d.Detail},
		}, nil
	})
}

// uuid writes the beginning of a digest as a UUID of version 8, whose bits are the maker's own (RFC 9562 section 5.8).
func uuid(digest string) string {
	b := []byte(digest[:32])
	b[12] = '8'
	b[16] = "89ab"[b[16]&3]
	return fmt.Sprintf("%s-%s-%s-%s-%s", b[:8], b[8:12], b[12:16], b[16:20], b[20:])
}
