package mlflow

import (
	"testing"

	"github.com/starling-network/starling/client/job/spec"
)

func TestParams(t *testing.T) {
	spec := spec.Default()
	spec.Model.Config, spec.Name = map[string]any{"n_layer": 2}, "small"
	spec.Notify.Webhook = "https://example.org/secret"
	got := Params(spec)
	for key, want := range map[string]string{"training.learning_rate": "0.0003", "model.config.n_layer": "2",
		"training.optimizer.betas": "[0.9,0.95]", "strategy.verification.mode": "spot_check", "name": "small",
		"notify.webhook": "", "output.dir": "", "strategy.workers.target": "4"} {
		if got[key] != want {
			t.Errorf("%s: %q, want %q", key, got[key], want)
		}
	}
}
