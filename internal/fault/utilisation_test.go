package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/sim"
)

// BenchmarkUtilisation measures what part of their time workers on slow links are in inner steps, and reports what the formula
// of the simulator says of a round of that kind, and how far apart the two are.
func BenchmarkUtilisation(b *testing.B) {
	separate(b)
	const (
		rounds, steps = 6, 300
		kbit          = 16_000
		used          = 0.92 // that pacing uses of a link
	)
	n := newNetwork(b, true, nil)
	for _, w := range n.members() {
		w.machine.slow(kbit)
	}
	for key, value := range map[string]any{
		"strategy.sync_steps": steps, "training.max_steps": rounds * steps, "strategy.verification": "{mode: none}",
		"model.config": "{hidden_size: 192, num_hidden_layers: 4, num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: 512, max_position_embeddings: 32}",
	} {
		n.set = append(n.set, "--set", fmt.Sprintf("%s=%v", key, value))
	}
	n.jobs++ // the undisturbed run would take as long again
	for b.Loop() {
		j := n.submit("slow-links", rounds)
		j.until("the last round", func(s run.State) bool { return s.Round == rounds-1 && s.Phase == run.Train })
		var update uint64
		for _, u := range j.run(j.id).Open[0].Units {
			update = max(update, u.Commit.Bytes)
		}
		j.finish()

		var computing, all time.Duration
		for _, w := range n.workers {
			asked, trained := units(b, filepath.Join(n.dir, w.name, "events"))
			for round := range rounds - 2 { // all but the first, which fetches the job
				computing += trained[round+1].Sub(asked[round+1])
				all += asked[round+2].Sub(asked[round+1])
			}
		}
		r := sim.Round{
			Workers: workers, Verifiers: 1, Inner: computing / (workers * (rounds - 2)), Update: int64(update), Block: 200 * time.Millisecond,
			Link: sim.Link{Up: used * kbit * 125, Down: used * kbit * 125},
		}
		got := computing.Seconds() / all.Seconds()
		b.ReportMetric(r.Inner.Seconds(), "inner-s/round")
		b.ReportMetric(all.Seconds()/(workers*(rounds-2)), "s/round")
		b.ReportMetric(float64(update)/1e6, "MB/update")
		b.ReportMetric(got, "measured")
		b.ReportMetric(r.Utilisation(), "formula")
		b.ReportMetric(100*(got-r.Utilisation()), "points-apart")
	}
}

// units reads from the journals in a folder when a worker was asked to compute the unit of a round, and when it had done so.
func units(t testing.TB, dir string) (asked, trained map[int]time.Time) {
	t.Helper()
	asked, trained = map[int]time.Time{}, map[int]time.Time{}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var l struct {
				Time  time.Time
				Event string
				Value struct {
					Action struct{ Work struct{ Round int } }
				}
				Actions []struct{ Key string }
			}
			if json.Unmarshal(line, &l) != nil {
				continue // of another shape
			}
			for _, a := range l.Actions {
				var round int
				if strings.HasPrefix(a.Key, "train ") {
					_, _ = fmt.Sscanf(a.Key, "train %d/", &round)
					asked[round] = l.Time
				}
			}
			if l.Event == "Trained" {
				trained[l.Value.Action.Work.Round] = l.Time
			}
		}
	}
	return asked, trained
}
