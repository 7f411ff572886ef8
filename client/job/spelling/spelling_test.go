package spelling

import "testing"

func TestNearest(t *testing.T) {
	keys := []string{"max_steps", "warmup_steps", "lr", "learning_rate", "precision"}
	for word, want := range map[string]string{"max_step": "max_steps", "mxa_steps": "max_steps", "MAX_STEPS": "max_steps",
		"learnin_rat": "learning_rate", "colour": "", "precison": "precision", "": "", "x": ""} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
