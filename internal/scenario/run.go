package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Store is a fresh state of a scenario.
type Store interface {
	dispatch.Store
	Key() []byte
	Close() error
}

// World makes what scenarios run on from the configuration and policy under test.
type World interface {
	// Store opens a fresh state.
	Store(ctx context.Context) (Store, error)
	// Task gives the task that commands use by default where id is empty, and false where none of that id is
	// configured.
	Task(id string) (TaskSpec, bool)
	// Roles are those of a reviewer as configured.
	Roles(reviewer string) []string
	// Snapshot is the configured one, but for what the setting says.
	Snapshot(ctx context.Context, s Setting) (*dispatch.Snapshot, error)
	// Wrap makes tools fail, and has those outside answer from memory. What it returns counts its faults down and remembers
	// what took place outside, and belongs to one scenario.
	Wrap(f Faults, outside map[string]Answer) (func(map[string]dispatch.Tool) map[string]dispatch.Tool, error)
}

// Setting says how a scenario's snapshot differs from the configured one. Nil means not at all.
type Setting struct {
	// Profile is the task's; the rest changes that profile.
	Profile  string
	Tools    *[]string
	Readable *[]string // targets, not names of sets
	Scopes   *[]string
	MaxSteps *int
	// Policy lists paths that replace the configured policy.
	Policy []string
	// Wrap is laid around the tools.
	Wrap func(map[string]dispatch.Tool) map[string]dispatch.Tool
}

// start is when the clock of a scenario stands until a configure step sets it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// operator and reviewer act where a scenario names nobody.
const (
	operator = "scenario"
	reviewer = "reviewer"
)

type runner struct {
	world      World
	scenario   Scenario
	store      Store
	dispatcher *dispatch.Dispatcher
	setting    Setting
	now        time.Time
	principal  dispatch.Principal
	task       string
	mode       dispatch.Mode
}

// Run runs one scenario. An error means that it could not be run as written, not that an expectation failed.
func Run(ctx context.Context, w World, s Scenario) (report Report, err error) {
	r := &runner{world: w, scenario: s, now: start}
	if err := r.begin(ctx); err != nil {
		return Report{}, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, r.store.Close()) }()
	report = Report{Name: s.Name, Category: s.Category}
	for i, step := range s.Steps {
		name, _ := step.event() // checked when it was read
		before, err := r.grown(ctx)
		if err != nil {
			return Report{}, err
		}
		result, shown, err := r.step(ctx, name, step)
		if err != nil {
			return Report{}, fmt.Errorf("scenario %q, step %d (%s): %w", s.Name, i+1, name, err)
		}
		after, err := r.grown(ctx)
		if err != nil {
			return Report{}, err
		}
		report.Steps = append(report.Steps, shown)
		place := fmt.Sprintf("step %d (%s)", i+1, name)
		report.fail(place, match(step.Expect, result, shown, "")...)
		report.fail(place, after.unexplained(before)...)
	}
	if report.Final, err = r.final(ctx); err != nil {
		return Report{}, err
	}
	report.fail("at the end", report.Final.compare(s.Expect)...)
	report.Passed = len(report.Failures) == 0
	return report, nil
}

func (r *runner) begin(ctx context.Context) error {
	spec := r.scenario.Task
	configured, ok := r.world.Task(spec.ID)
	if spec.ID == "" {
		spec.ID = configured.ID
	}
	if spec.Actor == "" {
		spec.Actor = configured.Actor
	}
	if spec.Profile == "" {
		if !ok {
			return fmt.Errorf("task %q is not configured; name its profile with task.profile", spec.ID)
		}
		spec.Profile = configured.Profile
	}
	wrap, err := r.world.Wrap(r.scenario.Faults, r.scenario.Outside)
	if err != nil {
		return err
	}
	r.setting = Setting{Profile: spec.Profile, MaxSteps: spec.MaxSteps, Wrap: wrap}
	snapshot, err := r.world.Snapshot(ctx, r.setting)
	if err != nil {
		return err
	}
	if r.store, err = r.world.Store(ctx); err != nil {
		return err
	}
	r.serve(snapshot)
	r.task, r.principal = spec.ID, dispatch.Principal{Tenant: dispatch.DefaultTenant, Actor: spec.Actor}
	if err := r.createTask(ctx, spec.ID); err != nil {
		return errors.Join(err, r.store.Close())
	}
	return nil
}

func (r *runner) serve(snapshot *dispatch.Snapshot) {
	r.dispatcher = dispatch.New(r.store, r.store.Key(), func() time.Time { return r.now }, snapshot)
}

func (r *runner) createTask(ctx context.Context, id string) error {
	return r.dispatcher.CreateTask(ctx, dispatch.Task{TaskKey: dispatch.TaskKey{Tenant: r.principal.Tenant, ID: id},
		Profile: r.setting.Profile, Actor: r.principal.Actor}, operator)
}

func (r *runner) key() dispatch.TaskKey {
	return dispatch.TaskKey{Tenant: r.principal.Tenant, ID: r.task}
}

func (r *runner) origin() dispatch.Origin { return dispatch.Origin{Door: "scenario", Mode: r.mode} }

// step gives what the step's caller was told, and what of that may be shown to whoever reads the report.
func (r *runner) step(ctx context.Context, name string, s Step) (result, shown ijson.Raw, err error) {
	switch name {
	case "propose":
		return told(r.dispatcher.Dispatch(ctx, r.principal, r.task, r.origin(), s.Propose.value))
	case "retry":
		return r.retry(ctx, s.Retry.value)
	}
	result, err = r.act(ctx, name, s)
	return result, result, err
}

func told(r dispatch.Result, failed error) (result, shown ijson.Raw, err error) {
	if result, err = answer(r, failed); err != nil {
		return nil, nil, err
	}
	shown, err = answer(r.Sealed(), failed)
	return result, shown, err
}

func (r *runner) act(ctx context.Context, name string, s Step) (ijson.Raw, error) {
	switch name {
	case "review":
		return r.review(ctx, s.Review.value)
	case "reopen":
		return r.reopen(ctx, s.Reopen.value)
	case "configure":
		return r.configure(ctx, s.Configure.value)
	case "policy":
		return r.policy(ctx, s.Policy.value)
	case "resolve":
		return r.resolve(ctx, s.Resolve.value)
	case "cancel":
		if err := r.dispatcher.Cancel(ctx, r.key(), operator); err != nil {
			return nil, err
		}
		return ijson.Marshal(map[string]bool{"cancelled": true})
	default: // restart: all that a process holds is made anew over the same state
		snapshot, err := r.world.Snapshot(ctx, r.setting)
		if err != nil {
			return nil, err
		}
		r.serve(snapshot)
		return ijson.Marshal(map[string]bool{"restarted": true})
	}
}

// answer is a step's result: what was returned, or the error that a person would have seen.
func answer(result any, err error) (ijson.Raw, error) {
	if err == nil {
		return ijson.Marshal(result)
	}
	if dispatch.KindOf(err) == dispatch.Broken {
		return nil, err
	}
	return ijson.Marshal(map[string]string{"error": err.Error()})
}

func (r *runner) retry(ctx context.Context, step retryStep) (result, shown ijson.Raw, err error) {
	limit := dispatch.MaxAttempts
	if step.Limit != nil {
		var ok bool
		if limit, ok = whole(step.Limit); !ok {
			return told(dispatch.Result{}, dispatch.ErrRetryLimit)
		}
	}
	return told(r.dispatcher.DispatchRetry(ctx, r.principal, r.task, r.origin(), step.Proposal, limit))
}

func (r *runner) review(ctx context.Context, step reviewStep) (ijson.Raw, error) {
	return reviewed(func() error {
		word, ok := ijson.String(step.Decision)
		if !ok {
			return dispatch.ErrReviewDecision
		}
		review := dispatch.Review{Reviewer: cmp.Or(step.Reviewer, reviewer), Decision: word, Reason: step.Reason}
		if review.Roles = r.world.Roles(review.Reviewer); step.Roles != nil {
			review.Roles = *step.Roles
		}
		if step.Lifetime != nil {
			n, ok := whole(step.Lifetime)
			if !ok {
				return dispatch.ErrReviewLifetime
			}
			review.Lifetime = &n
		}
		_, err := r.dispatcher.ReviewCall(ctx, r.principal, r.task, r.mode, step.Proposal, review)
		return err
	}())
}

func (r *runner) reopen(ctx context.Context, step reopenStep) (ijson.Raw, error) {
	_, err := r.dispatcher.ReopenCall(ctx, r.principal, r.task, r.mode, step.Proposal, cmp.Or(step.Reviewer, reviewer), step.Reason)
	return reviewed(err)
}

func (r *runner) resolve(ctx context.Context, step resolveStep) (ijson.Raw, error) {
	o, err := r.dispatcher.ResolveCall(ctx, r.principal, r.task, step.Proposal, dispatch.Resolution{
		State: dispatch.OperationState(step.State), Result: step.Result, Reason: step.Reason, By: operator})
	return answer(map[string]any{"resolved": o.State}, err)
}

func reviewed(err error) (ijson.Raw, error) {
	if err != nil && dispatch.KindOf(err) == dispatch.Broken {
		return nil, err
	}
	result := map[string]any{"reviewed": err == nil}
	if err != nil {
		result["error"] = err.Error()
	}
	return ijson.Marshal(result)
}

func (r *runner) configure(ctx context.Context, step configureStep) (ijson.Raw, error) {
	if step.Now != "" {
		now, err := parseTime(step.Now)
		if err != nil {
			return nil, err
		}
		r.now = now
	}
	if step.Mode != "" {
		r.mode = dispatch.Mode(step.Mode)
	}
	if step.Tools != nil {
		r.setting.Tools = step.Tools
	}
	if step.Readable != nil {
		r.setting.Readable = step.Readable
	}
	if step.Scopes != nil {
		r.setting.Scopes = step.Scopes
	}
	snapshot, err := r.world.Snapshot(ctx, r.setting)
	if err != nil {
		return nil, err
	}
	r.dispatcher.Use(snapshot)
	if step.Actor != "" {
		if err := r.dispatcher.AssignTask(ctx, r.key(), step.Actor, operator); err != nil {
			return nil, err
		}
		r.principal.Actor = step.Actor
	}
	if step.Task != "" {
		if err := r.createTask(ctx, step.Task); err != nil {
			return nil, err
		}
		r.task = step.Task
	}
	return ijson.Marshal(map[string]string{"policy_version": snapshot.Version})
}

func (r *runner) policy(ctx context.Context, path string) (ijson.Raw, error) {
	setting := r.setting
	setting.Policy = []string{r.scenario.resolve(path)}
	snapshot, err := r.world.Snapshot(ctx, setting)
	if err != nil {
		return nil, err
	}
	r.setting = setting
	r.dispatcher.Use(snapshot)
	return ijson.Marshal(map[string]string{"policy_version": snapshot.Version})
}

// whole reads a JSON number that is an integer of a sensible size, and nothing else.
func whole(raw ijson.Raw) (int, bool) {
	var n int
	if raw.Kind() != '0' || ijson.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return n, true
}
