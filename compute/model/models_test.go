package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
)

func mustParse(t testing.TB, modelType string, raw map[string]any) architecture.Config {
	t.Helper()
	c, err := architecture.Parse(modelType, raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tiny returns the models that numerical tests run on.
func tiny(t testing.TB) map[string]architecture.Config {
	return map[string]architecture.Config{
		"gpt2":       mustParse(t, architecture.GPT2, modeltest.GPT2()),
		"llama":      mustParse(t, architecture.Llama, modeltest.Llama()),
		"llama-tied": mustParse(t, architecture.Llama, modeltest.With(modeltest.Llama(), "tie_word_embeddings", true)),
	}
}

func describe(list []architecture.Named) []string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprint(n.Name, " ", n.Shape.Dims))
	}
	return out
}

func checkNear(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %g, want %g within %g", what, got, want, tolerance)
	}
}
