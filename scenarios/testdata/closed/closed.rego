# A policy that denies everything with a status of the site's own.
package policy

decision := {
	"effect": "deny",
	"status": "stock_taking",
	"reasons": [{"code": "stock_taking", "message": "the warehouse is closed for stock-taking"}],
	"policy_version": data.govern.version,
}
