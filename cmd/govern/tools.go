package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/tools"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "tools", Short: "The definitions of the tools: what models are shown, and what is checked",
		Long: `A definition says what a tool is for, what it can do to the world, and which arguments it takes. Models are
shown the same JSON Schema that their calls are checked against. Which tools a task may use is another matter: that
is the profile's in the configuration.`,
	})
	cmd.AddCommand(a.toolsList(), a.toolsShow())
	return cmd
}

func (a *app) toolsList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tools that there are", Args: args(), Example: "  govern tools list --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		l := a.list(f, "TOOL", "EFFECT", "APPROVAL", "SCOPES", "PROFILES")
		for _, name := range g.toolNames() {
			d := g.tools[name].Definition()
			if err := l.add(d, d.Name, string(d.Effect), string(d.Approval), strings.Join(d.Scopes, ", "), strings.Join(g.profilesWith(name), ", ")); err != nil {
				return err
			}
		}
		return l.end("there are no tools")
	}
	return cmd
}

func (a *app) toolsShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show NAME", Short: "Show one tool's definition, with the schema of its arguments", Args: args("the NAME of a tool"),
		Example: "  govern tools show record_draft"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		g, err := a.load(cmd)
		if err != nil {
			return err
		}
		tool, ok := g.tools[given[0]]
		if !ok {
			return misuse(fmt.Errorf("there is no tool %q", given[0])).near(given[0], g.toolNames(), "there is "+strings.Join(g.toolNames(), ", "))
		}
		d := tool.Definition()
		if f.json() {
			return writeJSON(a.stdout, d)
		}
		return a.showTool(d, g.profilesWith(d.Name))
	}
	return cmd
}

func (a *app) showTool(d dispatch.Definition, profiles []string) error {
	digest, err := d.Digest()
	if err != nil {
		return err
	}
	schema, err := ijson.Indent(d.Schema)
	if err != nil {
		return err
	}
	for _, row := range [][2]string{{"tool", d.Name}, {"version", d.Version}, {"runs", d.Local}, {"reaches", reaches(d)}, {"effect", string(d.Effect)},
		{"approval", string(d.Approval)}, {"scopes", strings.Join(d.Scopes, ", ")}, {"cost", positive(d.Cost)}, {"target", d.Target},
		{"key", d.Key}, {"drop", strings.Join(d.Drop, ", ")}, {"sensitive", sensitive(d)}, {"resource", d.Resource}, {"labels", strings.Join(d.Labels, ", ")},
		{"recovery", recovery(d)}, {"at most", atMost(d.Limits)}, {"profiles", strings.Join(profiles, ", ")}, {"digest", digest}, {"purpose", d.Description}} {
		if row[1] != "" {
			fmt.Fprintf(a.stdout, "%-9s %s\n", row[0], printable(row[1]))
		}
	}
	if _, err = fmt.Fprintf(a.stdout, "arguments\n%s\n", visibleLines(schema)); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		raw  ijson.Raw
	}{{"gives", d.Output}, {"outside", d.Outside}} {
		if part.raw == nil {
			continue
		}
		laidOut, err := ijson.Indent(part.raw)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.stdout, "%s\n%s\n", part.name, visibleLines(laidOut)); err != nil {
			return err
		}
	}
	return nil
}

// reaches says where a tool outside is.
func reaches(d dispatch.Definition) string {
	var o tools.Outside
	if d.Outside == nil || ijson.Unmarshal(d.Outside, &o) != nil {
		return ""
	}
	return o.HTTP.Method + " " + o.HTTP.URL
}

// recovery says how the outcome of a write outside is found out.
func recovery(d dispatch.Definition) string {
	if !d.IsOutside() || d.Effect != dispatch.Write {
		return ""
	}
	var ways []string
	if r := d.Recovery.Retention; r > 0 {
		ways = append(ways, "repeated within "+r.Duration().String())
	}
	if d.Recovery.Lookup {
		ways = append(ways, "looked up, and not there after "+d.Recovery.Settle.Duration().String())
	}
	if ways == nil {
		return "by an operator"
	}
	return strings.Join(ways, "; ")
}

func atMost(l dispatch.ToolLimits) string {
	said := bytesOrNone(l.OutputBytes)
	if l.Time > 0 {
		said += ", " + l.Time.Duration().String()
	}
	return said
}

// visibleLines shows JSON that was laid out over several lines. Its strings have no line breaks of their own.
func visibleLines(laidOut ijson.Raw) string {
	lines := strings.Split(string(laidOut), "\n")
	for i, line := range lines {
		lines[i] = visible(line, jsonEscape)
	}
	return strings.Join(lines, "\n")
}

// sensitive names what only the tool, its caller and reviewers see.
func sensitive(d dispatch.Definition) string {
	said := strings.Join(d.Sensitive, ", ")
	if len(d.SensitiveOutput) > 0 {
		said = strings.TrimPrefix(said+"; in what it gives: "+strings.Join(d.SensitiveOutput, ", "), "; ")
	}
	return said
}

func bytesOrNone(n int) string {
	if n == 0 {
		return ""
	}
	return plural(n, "byte")
}

// positive writes a number that is left out where it is 0.
func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
