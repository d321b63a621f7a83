package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/opa"
)

func (a *app) policyCheck() *cobra.Command {
	cmd := &cobra.Command{Use: "check", Short: "Everything that is wrong with the policy and its layers, at once", Args: args(),
		Long: `Every command refuses a policy that says what cannot be meant: a field that the input never has, a word that a
field never is, data that nothing gives, a code that two rules claim, a layer's rule that nothing would ask. This one
lists all of it, each with its place and what to do about it.

Exit code: 0 if there is nothing, 2 otherwise.`,
		Example: "  govern policy check\n  govern policy check --org examples/layers/org --site examples/layers/site"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		g, err := a.load(cmd)
		var found opa.Findings
		if err != nil && !errors.As(err, &found) {
			return err
		}
		if f.json() {
			if err := writeJSON(a.stdout, reportOf(g, found)); err != nil || len(found) == 0 {
				return err
			}
			return quietError(exitMisuse)
		}
		for _, one := range found {
			fmt.Fprintln(a.stdout, printable(one.String()))
		}
		if len(found) > 0 {
			return misuse(errors.New(plural(len(found), "finding")))
		}
		fmt.Fprintf(a.stdout, "no findings: policy %s\n", g.policy.Version())
		for _, l := range layersOf(g) {
			fmt.Fprintln(a.stdout, printable("  "+l.String()))
		}
		return nil
	}
	return cmd
}

// policyReport is what a policy is, or what is wrong with it.
type policyReport struct {
	Version  string       `json:"policy_version,omitzero"`
	Layers   []layerRow   `json:"layers"`
	Findings []findingRow `json:"findings"`
}

type findingRow struct {
	Place  string `json:"place"`
	What   string `json:"what"`
	Remedy string `json:"remedy,omitzero"`
}

func reportOf(g governed, found opa.Findings) policyReport {
	r := policyReport{Layers: layersOf(g)}
	if g.policy != nil {
		r.Version = g.policy.Version()
	}
	for _, one := range found {
		r.Findings = append(r.Findings, findingRow{one.Place(), one.What, one.Remedy})
	}
	return r
}

// layerRow is a layer as people and programs are shown it.
type layerRow struct {
	Layer    string    `json:"layer"`
	Revision string    `json:"revision,omitzero"`
	Source   string    `json:"source"`
	Packs    []packRow `json:"packs"`
}

type packRow struct {
	Pack    string `json:"pack"`
	Version string `json:"version"`
}

func layersOf(g governed) []layerRow {
	if g.policy == nil {
		return nil
	}
	var rows []layerRow
	for _, l := range g.policy.Layers() {
		row := layerRow{Layer: string(l.Layer), Revision: l.Revision, Source: l.Label}
		for _, p := range l.Packs {
			row.Packs = append(row.Packs, packRow{p.Name, p.Version})
		}
		rows = append(rows, row)
	}
	return rows
}

func (l layerRow) String() string {
	words := []string{"layer " + l.Layer}
	if l.Revision != "" {
		words = append(words, "revision "+l.Revision)
	}
	words = append(words, "from "+l.Source)
	for _, p := range l.Packs {
		words = append(words, "pack "+p.Pack+" "+p.Version)
	}
	return strings.Join(words, ", ")
}
