package refusal

import (
	"net/http"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
)

// Elsewhere refuses to continue a job where it was not submitted.
func Elsewhere(account string) error {
	fix := "submit it with another Idempotency-Key"
	if account != "" {
		fix = "start the server with --network and --home of " + account + ", which ordered it, or " + fix
	}
	return failure.New(http.StatusConflict, "JOB_ELSEWHERE",
		"the Idempotency-Key stands for a job that is not trained on this network by this account", fix)
}

// Unreachable is why a job waits for a network that does not answer.
func Unreachable() *api.Reason {
	return &api.Reason{Code: "network_unreachable", Text: "the network does not answer",
		Next: "the job continues when it does"}
}
