package dispatch

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bodies are the bodies of all entries by kind, and what stands in them by the words that docs/evidence.md has for it.
var (
	bodies = map[Kind]any{
		KindTask: TaskEntry{}, KindDecision: DecisionEntry{}, KindAction: ActionEntry{}, KindReview: ReviewEntry{}, KindReopen: ReviewEntry{},
		KindExpiry: ClosingEntry{}, KindCancel: ClosingEntry{}, KindActivation: ActivationEntry{}, KindBaseline: BaselineEntry{},
		KindKey: KeyEntry{}, KindOutcome: OutcomeEntry{}, KindSettlement: SettlementEntry{},
	}
	parts = map[string]any{"every entry": EntryHeader{}, "an approval": Stand{}, "a decision": Decision{}, "a reason": Reason{},
		"terms": Terms{}, "a start": Start{}, "a stage": Stage{}, "a vote": Vote{}}
)

var (
	documented = regexp.MustCompile("`([a-z_]+)`(\\*?)")
	tableForm  = regexp.MustCompile(`(?m)^\| ([^|\n]+) \|.*\|\n\|---\|---\|\n((?:\|.*\n)+)`)
)

// docs/evidence.md has a table for every kind of entry and for what stands in them, each with exactly the members that
// there are, and says of each whether it can be absent.
func TestEveryMemberOfEveryEntry(t *testing.T) {
	text, err := os.ReadFile("../../docs/evidence.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Entries\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	tables := map[string][]string{}
	for _, m := range tableForm.FindAllStringSubmatch(section, -1) {
		var members []string
		for row := range strings.Lines(m[2]) {
			names, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
			for _, name := range documented.FindAllStringSubmatch(names, -1) {
				members = append(members, name[1]+name[2])
			}
		}
		for _, title := range strings.Split(m[1], ", ") {
			require.NotContains(t, tables, title)
			tables[strings.Trim(title, "`")] = members
		}
	}
	want := map[string]any{}
	for _, kind := range Kinds {
		require.Contains(t, bodies, kind)
		want[string(kind)] = bodies[kind]
	}
	known := map[reflect.Type]bool{}
	for title, part := range parts {
		want[title] = part
		known[reflect.TypeOf(part)] = true
	}
	for title, body := range want {
		if assert.Contains(t, tables, title) {
			assert.ElementsMatch(t, membersOf(t, reflect.TypeOf(body), known), tables[title], title)
		}
	}
	assert.Len(t, tables, len(want), "each table is of something")
}

// membersOf gives the members of a struct, without the header's, those that can be absent with a star. What they are made
// of must be documented too.
func membersOf(t *testing.T, s reflect.Type, known map[reflect.Type]bool) (members []string) {
	for i := range s.NumField() {
		field := s.Field(i)
		if field.Anonymous {
			require.Equal(t, reflect.TypeFor[EntryHeader](), field.Type)
			continue
		}
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if option == "omitzero" {
			name += "*"
		}
		members = append(members, name)
		part := field.Type
		for part.Kind() == reflect.Slice || part.Kind() == reflect.Pointer {
			part = part.Elem()
		}
		if part.Kind() == reflect.Struct {
			assert.True(t, known[part], "%s.%s is of %s, which docs/evidence.md does not have", s, field.Name, part)
		}
	}
	return members
}
