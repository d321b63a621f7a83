package opa

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What stock opa check lets pass, or finds only if it is asked in the right way, is found at every load.
func TestB018LoadChecksReferences(t *testing.T) {
	for name, c := range map[string]struct{ rules, want string }{
		"a misspelt field": {`_x if input.call.targt == "a"`,
			"bundle/b.rego:3: input.call has no \"targt\"; did you mean target?"},
		"a misspelt argument's parent": {`_x if input.call.argument.path == "a"`,
			"bundle/b.rego:3: input.call has no \"argument\"; did you mean arguments?"},
		"a misspelt field where a guard asks whether it is there": {`_x if not input.call.argument.path`,
			"bundle/b.rego:3: input.call has no \"argument\"; did you mean arguments?"},
		"a field of nothing":    {`_x if input.mode.name == "a"`, "bundle/b.rego:3: input.mode has nothing inside"},
		"a field of each vote":  {"_x if {\n\tsome vote in input.state.approval.votes\n\tvote.decison == \"approved\"\n}", "bundle/b.rego:5: vote has no \"decison\"; did you mean decision?"},
		"a fact about others":   {`_x if is_null(input.state.unsetled)`, "bundle/b.rego:3: input.state has no \"unsetled\"; did you mean unsettled?"},
		"another write":         {`_x if input.state.write_start`, "bundle/b.rego:3: input.state has no \"write_start\""},
		"of an operation":       {`_x if input.state.operation.repeatabel`, "bundle/b.rego:3: input.state.operation has no \"repeatabel\"; did you mean repeatable?"},
		"of a budget":           {`_x if input.state.budgets.output.reservd > 0`, "did you mean reserved?"},
		"no field like it":      {`_x if input.colour == "red"`, "bundle/b.rego:3: input has no \"colour\"; there is call, gate, mode, now, state, task, tool"},
		"the gate's input":      {`_x if input.gate.name == "a"` + "\n\n_y if _x", ""}, // nothing asks for it
		"the gate of a call":    {"_x if input.gate.confirmed", "bundle/b.rego:3: input.gate is there for data.policy.gate alone"},
		"a call of the gate":    {"gate := \"allow\" if _x\n\n_x if input.call.tool == \"a\"", "bundle/b.rego:5: data.policy.gate is asked about a name alone, and its input has no call"},
		"an argument":           {`_x if input.call.arguments.anything.at.all == 1`, ""},
		"a scope":               {`_x if input.task.scopes["read:document"]`, ""},
		"a field that is null":  {`_x if is_null(input.state.approval)`, ""},
		"equal to null":         {`_x if input.state.approval == null`, "bundle/b.rego:3: the two sides are never equal, by their types; to ask for null write is_null(…)"},
		"equal by no chance":    {`_x if input.mode == 7`, "bundle/b.rego:3: the two sides are never equal, by their types"},
		"data":                  {`_x if data.readible.warehouse`, "bundle/b.rego:3: data has no \"readible\": no rule and no data gives it; did you mean readable?"},
		"data with dashes":      {`_x if data["red-able"].warehouse`, "bundle/b.rego:3: data has no \"red-able\""},
		"a member of profiles":  {`_x if data.profiles[input.task.profile].tool`, "has no \"tool\": no rule and no data gives it; did you mean tools?"},
		"of one profile":        {`_x if data.profiles.lab.tool`, "did you mean tools?"},
		"the version":           {`_x if data.govern.vers`, "data.govern has no \"vers\""},
		"a layer's rule":        {`_x if count(data.site.denny) > 0`, "data.site has no \"denny\": no rule and no data gives it; did you mean deny?"},
		"a rule of this policy": {`_x if data.policy._yy` + "\n\n_y := 1", "data.policy has no \"_yy\": no rule and no data gives it; did you mean _y?"},
		"through an import":     {"import data.limits as l\n\n_x if l.most_calls > 1", "bundle/b.rego:5: data.limits has no \"most_calls\""},
		"the bundle's data":     {`_x if data.limits.calls > 1`, ""},
		"a list of the data":    {`_x if data.limits.days[0] == "mon"`, ""},
		"what govern puts in": {`_x if {
	data.profiles[input.task.profile].tools[input.call.tool]
	data.profiles.lab.readable
	data.profiles[_].writable
	data.profiles[_].scopes
	data.profiles[_].budgets.cost > 0
	data.readable.warehouse[input.call.target]
	data.writable
	data.govern.version
	count(data.org.forbid) + count(data.org.deny) + count(data.org.require_approval) == 0
	count(data.site.forbid) + count(data.site.deny) + count(data.site.require_approval) == 0
	_y.anything
	data.policy._y
}

_y := {"anything": input.now.epoch}`, ""},
		"a misspelt set":          {`_x if data.readable.warehose[input.call.target]`, "bundle/b.rego:3: data.readable has no \"warehose\": no rule and no data gives it; did you mean warehouse?"},
		"a target of a set":       {`_x if data.readable.warehouse["/later"]`, ""},
		"sets that nobody gives":  {`_x if data.writable.drafts[input.call.target]`, ""},
		"a path that is computed": {`_x if data.limits[input.call.tool]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			decision := "decision := {} if _x\n"
			if strings.HasPrefix(name, "a call of the gate") || name == "the gate's input" {
				decision = "decision := {}\n"
			}
			_, err := load(t, files{"a.rego": "package policy\n\n" + decision, "b.rego": "package policy\n\n" + c.rules + "\n",
				"d.json": `{"limits": {"calls": 3, "days": ["mon"]}, "readable": {"warehouse": {"/a": true}}}`})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A word that a field never has compares false for ever, or, the other way round, true.
func TestB104LoadChecksWords(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"equal":                 {`input.tool.approval == "alwas"`, `input.tool.approval is never "alwas"; did you mean "always"?`},
		"the other way round":   {`"alwas" == input.tool.approval`, `input.tool.approval is never "alwas"`},
		"not equal":             {`input.mode != "dryrun"`, `input.mode is never "dryrun"; did you mean "dry_run"?`},
		"negated":               {`not input.mode == "dryrun"`, `input.mode is never "dryrun"`},
		"unified":               {`input.mode = "dryrun"`, `input.mode is never "dryrun"`},
		"in a set":              {`input.tool.effect in {"pure", "raed"}`, `input.tool.effect is never "raed"; did you mean "read"?`},
		"in a list":             {`input.tool.effect in ["pure", "raed"]`, `input.tool.effect is never "raed"`},
		"not in":                {`not input.tool.effect in {"pure", "raed"}`, `input.tool.effect is never "raed"`},
		"another case":          {`input.state.approval.state == "Approved"`, `input.state.approval.state is never "Approved"; did you mean "approved"?`},
		"another type":          {`input.tool.approval != ["always"]`, "bundle/b.rego:4"},
		"nothing like it":       {`input.mode == "production"`, `input.mode is never "production"; it is one of ["enforce" "dry_run"]`},
		"some":                  {"some vote in input.state.approval.votes\n\tvote.decision == \"aproved\"", `bundle/b.rego:5: input.state.approval.votes[_].decision is never "aproved"; did you mean "approved"?`},
		"some with its place":   {"some i, vote in input.state.approval.votes\n\ti > 0\n\tvote.decision == \"aproved\"", `is never "aproved"`},
		"every":                 {"every vote in input.state.approval.votes { vote.decision == \"aproved\" }", `input.state.approval.votes[_].decision is never "aproved"`},
		"a variable":            {"word := input.mode\n\tword == \"dryrun\"", `bundle/b.rego:5: input.mode is never "dryrun"`},
		"a part in a variable":  {"ap := input.state.approval\n\tap.mode == \"dryrun\"", `input.state.approval.mode is never "dryrun"`},
		"in a comprehension":    {"count([1 | some v in input.state.approval.votes; v.decision != \"rejectd\"]) > 0", `input.state.approval.votes[_].decision is never "rejectd"`},
		"in an else":            {"true\n}\n\nelse := false if {\n\tinput.mode == \"dryrun\"", `input.mode is never "dryrun"`},
		"of an operation":       {`input.state.operation.state == "comitted"`, `input.state.operation.state is never "comitted"; did you mean "committed"?`},
		"of others":             {`input.state.unsettled == "unknwon"`, `input.state.unsettled is never "unknwon"; did you mean "unknown"?`},
		"another's word":        {`input.state.unsettled in {"committed"}`, `input.state.unsettled is never "committed"; it is one of ["started" "unknown"]`},
		"nothing of others":     {"not is_null(input.state.unsettled)\n\tinput.state.unsettled != null\n\tinput.state.unsettled == \"started\"", ""},
		"right words":           {"input.mode == \"dry_run\"\n\tinput.tool.effect in {\"pure\", \"read\"}\n\tinput.state.operation.state != \"committed\"", ""},
		"a field without words": {`input.call.tool == "anything"`, ""},
		"no word":               {`input.tool.resource == ""`, ""},
		"null":                  {`input.tool != null`, ""},
		"two fields":            {`input.mode == input.state.approval.mode`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, files{"a.rego": "package policy\n\ndecision := {} if _x\n", "b.rego": "package policy\n\n_x if {\n\t" + c.body + "\n}\n"})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A name that is looked for among values, or ordered against another type, is found as little as a misspelt one.
func TestB104LoadChecksTypes(t *testing.T) {
	const among = "is an object, and `in` looks among its values, which are all true; write "
	for name, c := range map[string]struct{ body, want string }{
		"a scope":                   {`"x" in input.task.scopes`, "bundle/b.rego:4: input.task.scopes " + among + `input.task.scopes["x"]`},
		"no scope":                  {`not "x" in input.task.scopes`, among},
		"through a variable":        {"s := input.task.scopes\n\t\"x\" in s", "bundle/b.rego:5: input.task.scopes " + among},
		"a name in a variable":      {"input.call.tool in input.task.scopes", among + "input.task.scopes[name]"},
		"a tool":                    {`input.call.tool in data.profiles[input.task.profile].tools`, "data.profiles[_].tools " + among + "data.profiles[…].tools[name]"},
		"of one profile":            {`"x" in data.profiles.lab.writable`, among + `data.profiles.lab.writable["x"]`},
		"a target":                  {`input.call.target in data.readable.warehouse`, among},
		"a target of some set":      {"some set, true in data.profiles[input.task.profile].writable\n\tinput.call.target in data.writable[set]", "bundle/b.rego:5: data.writable[_] " + among},
		"a set by its value":        {"some set in data.profiles[input.task.profile].readable\n\tdata.readable[set][input.call.target]", "bundle/b.rego:5: data.profiles[_].readable[_] is true or false, and is looked up as a name; take the name"},
		"any of them":               {`true in input.task.scopes`, ""},
		"name and value":            {`"x", true in input.task.scopes`, ""},
		"each of them":              {"some name, true in data.profiles[input.task.profile].scopes\n\tinput.task.scopes[name]", ""},
		"keys of one's own":         {"m := {true: 1}\n\tm[input.call.keyed] == 1", ""},
		"in a list of the input":    {`"x" in input.tool.scopes`, ""},
		"in an argument":            {`"x" in input.call.arguments.list`, ""},
		"a number and a word":       {`input.now.epoch > "17"`, "bundle/b.rego:4: input.now.epoch is of type integer, and is ordered against type string: that holds always or never"},
		"a word and a number":       {`17 <= input.now.rfc3339`, "input.now.rfc3339 is of type string, and is ordered against type number or integer"},
		"a number in a variable":    {"n := \"17\"\n\tinput.state.step >= n", "bundle/b.rego:5: input.state.step"},
		"two fields of other types": {`input.now.epoch < input.state.deadline.rfc3339`, "input.now.epoch is of type integer, and is ordered against type string"},
		"two numbers":               {"input.now.epoch > 17\n\tinput.now.epoch > input.state.deadline.epoch\n\tinput.state.step < count(input.call.violations)", ""},
		"two words":                 {`input.now.rfc3339 > "2026"`, ""},
		"a variable":                {"w := {\"wirte\"}\n\tinput.tool.effect in w", `bundle/b.rego:5: input.tool.effect is never "wirte"; did you mean "write"?`},
		"a list in a variable":      {"w := [\"wirte\"]\n\tnot input.tool.effect in w", `input.tool.effect is never "wirte"`},
		"a word in a variable":      {"w := \"wirte\"\n\tinput.tool.effect == w", `input.tool.effect is never "wirte"`},
		"a rule":                    {`input.tool.effect in _effects`, `input.tool.effect is never "wirte"`},
		"a rule in a variable":      {"w := _effects\n\tinput.tool.effect in w", `input.tool.effect is never "wirte"`},
		"a rule that is a word":     {`input.mode != _word`, `bundle/b.rego:4: input.mode is never "dryrun"; did you mean "dry_run"?`},
		"a rule with a condition":   {`input.tool.effect in _perhaps`, ""},
		"right words":               {"w := {\"write\"}\n\tinput.tool.effect in w\n\tinput.tool.effect in _right", ""},
		"a variable of other use":   {"some w in [\"wirte\"]\n\tw == \"wirte\"\n\tinput.call.tool == w", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, files{"a.rego": "package policy\n\ndecision := {} if _x\n", "b.rego": "package policy\n\n_x if {\n\t" + c.body + "\n}\n",
				"c.rego": "package policy\n\n_effects := {\"wirte\"}\n\n_word := \"dryrun\"\n\n_right := [\"write\", \"read\"]\n\n_perhaps := {\"wirte\"} if input.call.keyed\n",
				"d.json": `{"readable": {"warehouse": {"/a": true}}}`})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// All of it is told at once, each with its place, in the order of the places; a policy that says nothing wrong says so.
func TestFindingsComeTogether(t *testing.T) {
	_, err := load(t, files{
		"a.rego": "package policy\n\ndecision := {} if {\n\tinput.mode == \"dryrun\"\n\tinput.call.targt\n\tdata.readible\n}\n",
		"b.rego": "# METADATA\n# schemas:\n#   - input: {type: object}\npackage policy\n\n# METADATA\n# custom:\n#   code: one\n_b := 1\n",
	})
	var found Findings
	require.ErrorAs(t, err, &found)
	var lines []string
	for _, f := range found {
		lines = append(lines, f.String())
	}
	assert.Equal(t, []string{
		`bundle/a.rego:4: input.mode is never "dryrun"; did you mean "dry_run"?`,
		`bundle/a.rego:5: input.call has no "targt"; did you mean target?`,
		`bundle/a.rego:6: data has no "readible": no rule and no data gives it; did you mean readable?`,
		`bundle/b.rego:1: the METADATA has schemas, which would take the place of the input's own schema; remove it: every rule is checked against policy/schemas/input.json`,
		`bundle/b.rego:9: the METADATA of _b: custom.message must say something`,
	}, lines)
	assert.Equal(t, "the policy has 5 faults\n"+strings.Join(lines, "\n"), err.Error())
	_, err = load(t, minimal)
	require.NoError(t, err)
}

// A bundle in which the package was renamed has no rule to ask: it is refused, by name, and never stands for "no answer".
func TestB097RenamedPackage(t *testing.T) {
	s, err := ReadFS(files{"a.rego": "package policies\n\n" + allow}.fs(), "bundle")
	require.NoError(t, err)
	_, err = New(t.Context(), Options{Source: s})
	require.ErrorContains(t, err, "bundle/a.rego:1: the file is package policies; every file of the policy must be package policy")
	require.ErrorContains(t, err, "the policy has no rule data.policy.decision")
}
