// Package govern holds what is built into the binary: the configuration with the files that it names, and the policy
// with its tests and the schema of its input.
package govern

import "embed"

// Files is the embedded tree.
//
//go:embed policy/*.rego policy/.manifest policy/schemas/input.json data/*.json schemas/*.json config.yaml
var Files embed.FS
