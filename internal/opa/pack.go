package opa

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// LayerInfo says which layer stands over the core, and what it is made of.
type LayerInfo struct {
	Layer    Layer
	Label    string
	Revision string // empty if its manifest has none
	Packs    []Pack
}

// Pack is a named set of rules that a layer takes in, as the METADATA of its package says.
type Pack struct {
	Name, Version string
	Place         string
}

// Layers lists the layers of the policy.
func (p *Policy) Layers() []LayerInfo { return p.layers }

// info reads what a layer says of itself.
func (s Source) info(modules []*ast.Module, found *Findings) LayerInfo {
	info := LayerInfo{Layer: s.layer, Label: s.label, Revision: s.revision}
	for _, m := range modules {
		for _, note := range m.Annotations {
			name, ok := note.Custom["pack"]
			if !ok {
				continue
			}
			p := Pack{Name: fmt.Sprint(name), Version: fmt.Sprint(note.Custom["version"]), Place: place(note.Location)}
			if _, isText := name.(string); !isText || p.Name == "" || note.Custom["version"] == nil {
				found.add(note.Location, "the METADATA names a pack without a version", "say both: custom.pack, such as shop_v1, and custom.version")
				continue
			}
			if first := slices.IndexFunc(info.Packs, func(q Pack) bool { return q.Name == p.Name }); first >= 0 {
				if info.Packs[first].Version != p.Version {
					found.add(note.Location, fmt.Sprintf("the pack %s is version %s here and %s at %s", p.Name, p.Version, info.Packs[first].Version, info.Packs[first].Place),
						"take all of its files from one version")
				}
				continue
			}
			info.Packs = append(info.Packs, p)
		}
	}
	return info
}
