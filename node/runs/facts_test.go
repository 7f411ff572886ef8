package runs

import (
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
)

func of(m spec.Model) *job.Job {
	file := &job.Job{}
	file.Model = m
	return file
}

// Jobs are compared by the size of their models, too, where the file says it.
func TestFactsHaveParameters(t *testing.T) {
	small := map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 64}
	for want, m := range map[string]spec.Model{
		"gpt2, 8,432 parameters": {Architecture: "gpt2", Config: small, Tokenizer: spec.Tokenizer{Kind: spec.ByteLevel}},
		"gpt2":                   {Architecture: "gpt2", Config: small, Tokenizer: spec.Tokenizer{Kind: spec.TokenizerFile}},
		"from base":              {BaseModel: "base"},
	} {
		if f := Facts(of(m))[0]; f.Name != "Model" || f.Value != want {
			t.Errorf("%+v, wanted %q", f, want)
		}
	}
}
