package job

import (
	"bytes"
	"strings"
	"testing"
)

// Keys and words of the previous version are read with a note each, and change no bit of the job.
func TestOldNames(t *testing.T) {
	for old, now := range map[string]string{
		"strategy.moment_rounds=4":                    "strategy.optimizer_state_rounds=4",
		"strategy={moment_rounds: 4, method: fedavg}": "strategy={optimizer_state_rounds: 4, method: fedavg}",
		"strategy.workers={target: 2, paces: [1, 0.5]}": "strategy.workers={target: 2, " +
			"relative_speeds: [1, 0.5]}",
		"strategy.verification.segments=partial":                    "strategy.verification.audit=partial",
		"strategy.verification.audit=drawn":                         "strategy.verification.audit=partial",
		"strategy.outer_optimizer={name: sign}":                     "strategy.outer_optimizer={name: signsgd}",
		"strategy={method: gossip, outer_optimizer: {name: pairs}}": "strategy.method=gossip",
	} {
		a, b := parse(t, minimal, old), parse(t, minimal, now)
		if !bytes.Equal(a.Canonical(), b.Canonical()) {
			t.Errorf("%s is another job than %s", old, now)
		}
		if len(a.Notes) != len(b.Notes)+1 {
			t.Errorf("%s: notes %v, want one more than %v", old, a.Notes, b.Notes)
		}
	}
	file := strings.Replace(minimal, "training:", "strategy: {moment_rounds: 3}\ntraining:", 1)
	if s := parse(t, file, "strategy.moment_rounds=4").Strategy; s.OptimizerStateRounds != 4 {
		t.Errorf("an override of the old name gives %d", s.OptimizerStateRounds)
	}
	file = strings.Replace(minimal, "training:", "strategy: {workers: {target: 2, paces: [1, 0.5]}}\ntraining:", 1)
	if w := parse(t, file, "strategy.workers.paces.1=0.25").Strategy.Workers; w.RelativeSpeeds[1] != 0.25 {
		t.Errorf("an override of an element by the old name gives %v", w.RelativeSpeeds)
	}
	both := strings.Replace(minimal, "training:", "strategy: {moment_rounds: 3, optimizer_state_rounds: 3}\ntraining:", 1)
	if _, err := Parse([]byte(both), "job.yaml"); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("the old name and the new: %v", err)
	}
}
