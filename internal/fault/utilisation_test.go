package fault

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/sim/forecast"
	"github.com/starling-network/starling/sim/link"
)

// BenchmarkUtilisation runs training in real processes, and compares the share of time that workers spend in their
// units with the prediction of forecast.Round. The durations of a unit, and of the work between units, are read from
// the logs of the workers. Run it on an otherwise idle machine.
func BenchmarkUtilisation(b *testing.B) {
	const rounds = 6
	for range b.N {
		n := newNetwork(b, false, nil)
		n.set = []string{"--set", "training.global_batch_size=6000"}
		n.submit("utilisation", rounds).until("the last round", func(s run.State) bool { return s.Round == rounds-1 })
		var logs []workLog
		for _, w := range n.workers {
			logs = append(logs, readWork(b, filepath.Join(n.dir, w.name, "worker.log")))
		}
		const first, last = 1, rounds - 3 // rounds whose start and end are attested
		var trained, waited, combined, span float64
		for r := first; r <= last; r++ {
			longest, combining := 0.0, 0.0
			for _, l := range logs {
				trained += l.train[r]
				longest, combining = max(longest, l.train[r]), max(combining, l.advance[r])
			}
			waited, combined = waited+longest, combined+combining
		}
		at := func(round int) (earliest time.Time) {
			for _, l := range logs {
				if t := l.attested[round]; earliest.IsZero() || !t.IsZero() && t.Before(earliest) {
					earliest = t
				}
			}
			return earliest
		}
		span = workers * at(last+1).Sub(at(first)).Seconds()
		mean := func(s float64) time.Duration { return time.Duration(s / (last - first + 1) * float64(time.Second)) }
		round := forecast.Round{
			Workers: workers, Verifiers: 1, Inner: mean(waited), Combine: mean(combined), Block: blockTime,
			Link: link.Link{Latency: time.Millisecond, Up: 1e9, Down: 1e9},
		}
		real, formula := trained/span, round.Utilisation()*trained/workers/waited
		b.ReportMetric(mean(trained/workers).Seconds(), "unit-s")
		b.ReportMetric(mean(waited).Seconds(), "longest-unit-s")
		b.ReportMetric(100*real, "real-%")
		b.ReportMetric(100*formula, "formula-%")
		b.ReportMetric(100*math.Abs(real-formula), "points-apart")
	}
}

// workLog is what a worker did, by round.
type workLog struct {
	train, advance map[int]float64   // seconds
	attested       map[int]time.Time // the beginning of a round
}

var actionDone = regexp.MustCompile(`^time=(\S+) .*msg="action done".* action="(train|advance|attest) (\d+).* ` +
	`seconds=([0-9.]+)`)

func readWork(b *testing.B, path string) workLog {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l := workLog{map[int]float64{}, map[int]float64{}, map[int]time.Time{}}
	for s := bufio.NewScanner(f); s.Scan(); {
		m := actionDone.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			b.Fatal(err)
		}
		round, _ := strconv.Atoi(m[3])
		took, _ := strconv.ParseFloat(m[4], 64)
		switch m[2] {
		case "train":
			l.train[round] += took
		case "advance":
			l.advance[round] += took
		default:
			l.attested[round] = at
		}
	}
	return l
}
