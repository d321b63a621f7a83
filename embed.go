// Package govern holds what is built into the binary: the policy with its tests, its data and the schema of its input,
// the documents of the warehouse, and the configuration.
package govern

import "embed"

// Files is the embedded tree.
//
//go:embed policy/*.rego policy/.manifest policy/schemas/input.json data/*.json config.yaml
var Files embed.FS
