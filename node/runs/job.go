package runs

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/totals"
)

// plan fills in what the job file asks for.
func plan(j *api.Job, file *job.Job) {
	if file == nil {
		return
	}
	if file.Name != "" {
		j.Name = file.Name
	}
	j.Steps, j.Rounds, j.Workers = file.Training.MaxSteps, file.Rounds(), file.Strategy.Workers.Target
	// A file has millionths of a coin. An order in the coin has the amount in its grains, or there would be none.
	j.BudgetUzen, _ = coins.Grains(api.CoinOf(j.Coin), uint64(file.Budget.MaxCost))
	j.Facts = Facts(file)
}

// Facts are what a person wants to know of a job.
func Facts(file *job.Job) []api.Fact {
	var data []string
	for _, d := range file.Datasets {
		data = append(data, fmt.Sprintf("%s (%s)", d.Path, d.Format))
	}
	s, t := file.Strategy, file.Training
	what := file.Model.Architecture + parameters(file.Model)
	if file.Model.BaseModel != "" {
		what = "from " + file.Model.BaseModel
	}
	if a := file.Model.Adapter; a != nil && a.LoRA != nil {
		what += fmt.Sprintf(", LoRA of rank %d, alpha %g", a.LoRA.R, float64(a.LoRA.Alpha))
		if len(a.LoRA.TargetModules) > 0 {
			what += " on " + strings.Join(a.LoRA.TargetModules, ", ")
		}
	}
	facts := []api.Fact{
		{Name: "Model", Value: what},
		{Name: "Data", Value: strings.Join(data, ", ")},
		{Name: "Batch", Value: fmt.Sprintf("%d sequences of %d tokens a step", t.GlobalBatchSize, file.SequenceLen)},
		{Name: "Method", Value: s.Method},
		{Name: "Rounds", Value: fmt.Sprintf("%d, each of %d inner steps", file.Rounds(), s.SyncSteps)},
		{Name: "Moments", Value: lasting(s.OptimizerStateRounds)},
		{Name: "Compression", Value: compression(s.Compression)},
		{Name: "Inner optimizer", Value: fmt.Sprintf("%s, %s rate up to %.4g", t.Optimizer.Name, t.LRScheduler,
			t.LearningRate)},
		{Name: "Outer optimizer", Value: fmt.Sprintf("%s at %g, momentum %g", s.OuterOptimizer.Name, s.OuterOptimizer.LR,
			s.OuterOptimizer.Momentum)},
		{Name: "Aggregation", Value: strings.ReplaceAll(string(s.Aggregation.Rule), "_", " ")},
		{Name: "Audit rate", Value: fmt.Sprintf("at least %g %% of the units, all of a new worker's",
			100*s.Verification.Fraction)},
		{Name: "Numerics", Value: t.Numerics},
		{Name: "Seed", Value: fmt.Sprint(file.Seed)},
	}
	if p := file.Parallel; p.On() {
		facts = slices.Insert(facts, 3, api.Fact{Name: "Stages", Value: fmt.Sprintf(
			"%d of a replica; replicas: %d, microbatches a step: %d%s", p.Stages, p.Replicas, p.Microbatches, p.Words())})
	}
	return facts
}

// parameters says how many a model has that the file describes in full; "" of others.
func parameters(m spec.Model) string {
	config := map[string]any{}
	switch m.Tokenizer.Kind {
	case spec.ByteLevel:
		config["vocab_size"] = 256
	case spec.TrainBPE:
		config["vocab_size"] = m.Tokenizer.VocabSize
	}
	maps.Copy(config, m.Config)
	if m.BaseModel != "" || config["vocab_size"] == nil {
		return ""
	}
	c, err := architecture.Parse(m.Architecture, config)
	if err != nil {
		return ""
	}
	digits := fmt.Sprint(c.Parameters())
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return ", " + digits + " parameters"
}

// lasting says through how many rounds moments last.
func lasting(rounds int) string {
	if rounds <= 1 {
		return "of one unit"
	}
	return fmt.Sprintf("last through %d rounds", rounds)
}

// compression says what of an update is sent.
func compression(c spec.Compression) string {
	text := c.Quantize
	if k, _, sparse := c.TopK(); sparse {
		text = fmt.Sprintf("%d of 4096 in %s", k, c.Quantize)
	}
	if c.Transform != "none" {
		text += ", " + c.Transform
	}
	if c.ErrorFeedback {
		text += fmt.Sprintf(", with error feedback through %d rounds", c.FeedbackRounds)
	}
	return text
}

// measure fills in what the records tell.
func measure(j *api.Job, h *source.History) {
	for _, m := range h.Metrics {
		if m.EvalLoss != nil {
			if j.FirstEvalLoss == nil {
				j.FirstEvalLoss = m.EvalLoss
			}
			j.EvalLoss, j.BitsPerByte = m.EvalLoss, m.BitsPerByte
		}
		if m.Kind != "round" {
			continue
		}
		j.Step, j.Round, j.Tokens = int(m.Step), int(m.Round), m.Tokens
		j.Seconds += m.Seconds
		j.BytesUp += m.BytesUp
		j.BytesDown += m.BytesDown
		j.PaidUzen = m.PaidUzen // with the fee, where there are no receipts
		if m.Round > 0 {
			loss := m.Loss
			j.Loss, j.TokensPerSecond, j.Workers = &loss, m.TokensPerSecond, m.Workers
		}
	}
	if n := len(h.Lineage); n > 0 {
		j.StateRoot = h.Lineage[n-1].StateRoot
	}
	if left := j.Steps - j.Step; left > 0 && j.Step > 0 {
		j.SecondsLeft = j.Seconds / float64(j.Step) * float64(left)
	}
	if paid, fee := totals.Spent(h.Receipts); paid+fee > 0 {
		j.PaidUzen, j.FeeUzen = paid, fee
	}
	for _, m := range totals.Members(h) {
		totals.AddAudits(&j.Audits, m.Audits)
		j.SlashedUzen += m.SlashedUzen
	}
}

// conclude fills in the totals that a run ended with.
func conclude(j *api.Job, s *summary, virtual bool) {
	if s.Name != "" {
		j.Name = s.Name
	}
	if virtual {
		j.Kind, j.Name = "simulation", j.ID
		if s.Name != "" && s.Name != j.ID {
			j.Name = s.Name + " " + j.ID
		}
		if len(s.Sweep) > 0 {
			j.Name += " (" + strings.Join(s.Sweep, ", ") + ")"
		}
		j.Steps, j.Rounds, j.Utilisation, j.Parties = s.Steps, s.Rounds, s.Utilisation, s.Parties
	}
	j.Job, j.Workers = s.Job, s.Workers
	if j.Audits.Drawn == 0 { // else its receipts say more than the totals of an older version
		j.Audits = s.Audits
	}
	j.PaidUzen, j.FeeUzen, j.RefundedUzen, j.BudgetUzen, j.SlashedUzen = s.PaidUzen, s.FeeUzen, s.RefundedUzen,
		s.BudgetUzen, s.SlashedUzen
	j.Coin = coins.Shown(s.Coin)
	j.Step, j.Round, j.Tokens, j.Seconds, j.SecondsLeft = s.Steps, s.Rounds, s.Tokens, s.Seconds, 0
	j.BytesUp, j.BytesDown, j.StateRoot = s.BytesUp, s.BytesDown, s.StateRoot
	if s.Seconds > 0 {
		j.TokensPerSecond = float64(s.Tokens) / s.Seconds
	}
}

// quiet is how long the files of a run may be silent before it counts as stopped where the system does not tell who
// holds its lock.
const quiet = 2 * time.Minute

// state says where a run is, and why.
func (f *folder) state(h *source.History, j *api.Job) (string, *api.Reason) {
	a := &f.about
	resume := f.resume()
	if a.asked != nil {
		resume = a.asked.Again(f.id, a.job)
	}
	switch {
	case a.virtual && a.summary.Halted != "":
		return "halted", &api.Reason{Code: a.summary.Halted,
			Text: "the simulated run ended before its last round: " + strings.ReplaceAll(a.summary.Halted, "_", " ")}
	case a.summary != nil && a.summary.Diverged != "":
		return "done", &api.Reason{Code: "diverged", Text: "the training diverged: " + a.summary.Diverged,
			Next: "lower training.learning_rate, or warm up longer"}
	case a.damaged != "" && a.run.Finished:
		return "done", &api.Reason{Code: "summary_unreadable", Text: a.damaged,
			Next: "restore the file from a copy of the folder; the model and its lineage are in other files"}
	case a.virtual || a.run.Finished:
		return "done", nil
	case f.live != nil:
		return "running", &api.Reason{Code: "training",
			Text: fmt.Sprintf("round %d of %d is %s", min(j.Round+1, j.Rounds), j.Rounds, phaseText(j.Phase))}
	}
	switch {
	case f.held || !f.known && time.Since(f.updated()) < quiet:
		return "running", &api.Reason{Code: "training",
			Text: fmt.Sprintf("another process trains round %d of %d", min(j.Round+1, j.Rounds), j.Rounds)}
	case a.asked != nil && a.asked.Cancel && a.asked.State != "":
		return a.asked.State, a.asked.Reason
	case a.summary != nil: // the run has a summary without a final state, and its process has ended
		return "halted", halted(h)
	case a.asked != nil && a.asked.State != "":
		return a.asked.State, a.asked.Reason
	case a.run.ID == "":
		return "stopped", &api.Reason{Code: "stopped", Text: "the server ended before the job began", Next: resume}
	}
	return "stopped", &api.Reason{Code: "stopped",
		Text: fmt.Sprintf("no process trains it; %d of %d rounds are attested", j.Round, j.Rounds), Next: resume}
}

// resume is the command that resumes a run, with the overrides of its job, from where the server was started.
func (f *folder) resume() string {
	parts := []string{"starling train", word(cmp.Or(f.about.run.JobFile, filepath.Join(f.shown, fileJob)))}
	for _, set := range f.about.run.Overrides {
		parts = append(parts, "--set", word(set))
	}
	return strings.Join(append(parts, "--dir", word(f.shown), "--resume"), " ")
}

// word is a text as one word of a shell.
func word(text string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("./:@%+=,_-", c)
	}
	if text != "" && strings.IndexFunc(text, func(c rune) bool { return !plain(c) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func phaseText(phase string) string {
	if phase == "" {
		return "under way"
	}
	return phase
}

// halted says why a run ended early, as the refund to its consumer tells.
func halted(h *source.History) *api.Reason {
	for _, r := range h.Receipts {
		if r.Kind == "refund" {
			return &api.Reason{Code: r.Reason, Text: r.Why,
				Next: "continue from the last checkpoint with starling train --resume, once the reason is gone"}
		}
	}
	return &api.Reason{Code: "run_halted", Text: "the run ended before its last round",
		Next: "see starling.log in its folder"}
}

// updated is when a file of the run was last written.
func (f *folder) updated() (at time.Time) {
	for _, name := range []string{fileMetrics, fileLineage, fileSummary, fileSimulation, fileRun} {
		if t := modified(filepath.Join(f.path, name)); t.After(at) {
			at = t
		}
	}
	return at
}
