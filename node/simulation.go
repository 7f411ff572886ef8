package node

import (
	"bytes"
	"encoding/csv"
	"errors"
	"os"
	"strconv"
)

// ErrNoParty is returned for a name that no party of a simulation has.
var ErrNoParty = errors.New("no such party")

// Names of the files of a simulation.
const (
	fileSimulation = "simulation.json"
	fileRounds     = "rounds.csv"
)

// Write leaves a simulation in a folder: simulation.json, report.html, the page that a run leaves behind, rounds.csv,
// and metrics.jsonl, receipts.jsonl and lineage.jsonl as of a run, which the folder must not hold (Probe). The same simulation gives the same bytes.
func (s *Simulation) Write(dir string) error {
	if err := Probe(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out := &OutDir{Path: dir}
	e := s.ending
	var lineage bytes.Buffer
	for _, l := range e.lines {
		lineage.Write(l.Encode())
	}
	return errors.Join(
		out.writeJSON(fileSimulation, s), out.write(fileRounds, e.table()), out.write(fileLineage, lineage.Bytes()),
		writeLines(out, fileMetrics, e.metrics), writeReceipts(out, e.receipts), e.writeReport(out, &s.Summary),
	)
}

// table is the rounds as comma-separated values.
func (e ending) table() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"round", "step", "tokens", "seconds", "train_loss", "eval_loss", "bytes_up", "bytes_down", "paid_uzen"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }
	var at float64
	for _, m := range e.metrics {
		if m.Kind != "round" {
			continue
		}
		at += m.Seconds
		eval := ""
		if m.EvalLoss != nil {
			eval = number(*m.EvalLoss)
		}
		_ = w.Write([]string{
			strconv.Itoa(int(m.Round)), strconv.Itoa(int(m.Step)), strconv.FormatUint(m.Tokens, 10), number(at), number(m.Loss), eval,
			strconv.FormatUint(m.BytesUp, 10), strconv.FormatUint(m.BytesDown, 10), strconv.FormatUint(m.PaidUzen, 10),
		})
	}
	w.Flush() // to memory: it does not fail
	return b.Bytes()
}
