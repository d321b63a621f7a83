# METADATA
# title: What the organisation adds, as an example
# description: |
#   A layer can only narrow. What stands in these three sets is asked by the policy after its own checks of authority:
#   forbid before everything else, deny before a new effect, require_approval for who has to agree.
# custom:
#   pack: org_drafts
#   version: 1.0.0
package org

# METADATA
# title: The id belongs to people
# description: Drafts whose id begins with official- are written by people alone.
# custom:
#   code: reserved_draft
#   message: drafts of this name are not for agents
#   remedy: The agent must choose another draft id. Only a person writes drafts that begin with official-.
forbid contains {"code": meta.code, "message": meta.message, "status": meta.code} if {
	meta := rego.metadata.rule().custom
	input.call.tool == "record_draft"
	is_string(input.call.target)
	startswith(lower(input.call.target), "official-")
}

# METADATA
# title: Two people agree to a draft
# description: Every draft waits for two people, each with a reason, and for no longer than a working day.
# custom:
#   code: two_people
#   message: two people must approve a draft, and say why
#   remedy: Ask a second person to review the call. Each approval needs a reason.
require_approval contains {
	"code": meta.code,
	"message": meta.message,
	"approval": {"approvers": 2, "ttl": "8h", "reason_required": true},
} if {
	meta := rego.metadata.rule().custom
	input.call.tool == "record_draft"
}
