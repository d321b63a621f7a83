package opa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
)

// testTimeout bounds one Rego test.
const testTimeout = 10 * time.Second

// TestResult is what came of one Rego test.
type TestResult struct {
	Name string
	// Location is the file and line of the test.
	Location string
	Passed   bool
	// Skipped tests are those named todo_test_…; they neither pass nor fail.
	Skipped bool
	// Output is what the test printed, and for a failed one what is known of the failure: an error, or the notes of
	// the cases that failed.
	Output string
}

// Test runs the Rego tests of a policy against itself, and those of its layers against all of it together, under the same
// capabilities as a decision. Data that comes from the configuration is not there: tests bring it themselves. A policy
// without tests is an error, since otherwise nothing would be tested in silence; so is one whose tests are all skipped.
func Test(ctx context.Context, s Source) (_ []TestResult, err error) {
	defer faulty(&err)
	compiling.Lock()
	defer compiling.Unlock()
	found, err := runTests(ctx, append(slices.Clone(s.modules), s.tests...), s.data.clone())
	if err != nil {
		return nil, err
	}
	if len(s.layers) > 0 {
		all := slices.Clone(s.modules)
		for _, l := range s.layers {
			all = append(append(all, l.modules...), l.tests...)
		}
		ofLayers, err := runTests(ctx, all, s.allData())
		if err != nil {
			return nil, err
		}
		found = append(found, ofLayers...)
	}
	if len(found) == 0 {
		return nil, errors.New(s.label + ": there is no Rego test; add rules named test_… in files named …_test.rego")
	}
	if !slices.ContainsFunc(found, func(r *tester.Result) bool { return !r.Skip }) {
		return nil, errors.New(s.label + ": every Rego test is skipped; one whose name begins with test_, not todo_test_, is run")
	}
	slices.SortFunc(found, func(a, b *tester.Result) int { return a.Location.Compare(b.Location) })
	results := make([]TestResult, 0, len(found))
	for _, r := range found {
		results = append(results, resultOf(r))
	}
	return results, nil
}

// runTests runs the tests among some files.
func runTests(ctx context.Context, files []file, data document) ([]*tester.Result, error) {
	modules, err := parse(files)
	if err != nil {
		return nil, err
	}
	store, err := newStore(data.root)
	if err != nil {
		return nil, err
	}
	txn, err := store.NewTransaction(ctx, storage.TransactionParams{})
	if err != nil {
		return nil, err
	}
	defer store.Abort(ctx, txn)
	ch, err := tester.NewRunner().
		SetCompiler(newCompiler().WithEnablePrintStatements(true)).
		SetStore(store).
		SetModules(modules).
		SetTimeout(testTimeout).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(true).
		RunTests(ctx, txn)
	if err != nil {
		var found Findings
		found.addErrors(err)
		return nil, fmt.Errorf("the policy's tests do not compile: %w", found.err())
	}
	var found []*tester.Result
	for r := range ch {
		found = append(found, r)
	}
	return found, ctx.Err()
}

func resultOf(r *tester.Result) TestResult {
	output := string(r.Output)
	if r.Error != nil {
		output += r.Error.Error() + "\n"
	}
	if r.Fail && r.FailedAt != nil {
		output += "failed at " + place(r.FailedAt.Location) + "\n"
	}
	for path, sub := range r.SubResults.Iter {
		if sub.Fail {
			output += "failed: " + strings.Join(path, " / ") + "\n"
		}
	}
	return TestResult{Name: r.Name, Location: place(r.Location), Passed: r.Pass(), Skipped: r.Skip, Output: output}
}
