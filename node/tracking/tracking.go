// Package tracking writes the metrics of a run in the forms that other tools read: event files of TensorBoard, the
// trainer_state.json of Hugging Face's Trainer, and the text of Prometheus.
//
// It formats and measures nothing. That a full disk or a hanging one does not hold a run up is its callers' business.
package tracking

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
)

// maxLine bounds a line of metrics.jsonl.
const maxLine = 1 << 20

// Read reads the metrics.jsonl of a run. A last line that a crash cut off is left out.
func Read(r io.Reader) (metrics []api.Metric, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if err != nil {
			return nil, err
		}
		var m api.Metric
		if err = json.Unmarshal(lines.Bytes(), &m); err == nil {
			metrics = append(metrics, m)
		}
	}
	return metrics, lines.Err()
}

// Scalar is one number of a metric under the name that TensorBoard and MLflow show.
type Scalar struct {
	Name  string
	Value float64
}

// Scalars are the numbers that a metric has.
func Scalars(m api.Metric) (all []Scalar) {
	add := func(name string, value float64) { all = append(all, Scalar{name, value}) }
	if m.Kind == "step" {
		add("train/loss", m.Loss)
		add("train/learning_rate", m.LearningRate)
		if m.GradNorm != nil {
			add("train/grad_norm", *m.GradNorm)
		}
		return all
	}
	if m.EvalLoss != nil {
		add("eval/loss", *m.EvalLoss)
		if m.Measured == nil { // the loss is that of text
			add("eval/perplexity", math.Exp(*m.EvalLoss))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Measured)) {
		add("eval/"+name, m.Measured[name])
	}
	if m.BitsPerByte != nil {
		add("eval/bits_per_byte", *m.BitsPerByte)
	}
	if m.Agreement != nil {
		add("run/agreement", *m.Agreement)
	}
	add("train/tokens", float64(m.Tokens))
	add("run/workers", float64(m.Workers))
	if m.Round > 0 {
		add("run/tokens_per_second", m.TokensPerSecond)
		add("run/round_seconds", m.Seconds)
		add("run/bytes_up", float64(m.BytesUp))
		add("run/bytes_down", float64(m.BytesDown))
		paid := api.CoinOf(m.Coin)
		add("run/paid_"+strings.ToLower(paid.Name()), paid.Float(m.PaidUzen))
	}
	return all
}

// TrainerState writes what the Trainer of Hugging Face's transformers leaves behind: log_history has the loss and the
// norm of the gradient of every step, and every measured eval loss.
func TrainerState(w io.Writer, metrics []api.Metric) error {
	type entry map[string]any
	state := struct {
		BestMetric *float64 `json:"best_metric"`
		BestStep   int      `json:"best_global_step"`
		GlobalStep int      `json:"global_step"`
		MaxSteps   int      `json:"max_steps"`
		Tokens     uint64   `json:"num_input_tokens_seen"`
		Local      bool     `json:"is_local_process_zero"`
		World      bool     `json:"is_world_process_zero"`
		History    []entry  `json:"log_history"`
	}{Local: true, World: true, History: []entry{}}
	for _, m := range metrics {
		state.GlobalStep, state.Tokens = max(state.GlobalStep, int(m.Step)), max(state.Tokens, m.Tokens)
		if m.Kind == "step" {
			e := entry{"step": m.Step, "loss": m.Loss, "learning_rate": m.LearningRate}
			if m.GradNorm != nil {
				e["grad_norm"] = *m.GradNorm
			}
			state.History = append(state.History, e)
		}
		if m.EvalLoss != nil {
			e := entry{"step": m.Step, "eval_loss": *m.EvalLoss}
			for name, x := range m.Measured {
				e["eval_"+name] = x
			}
			state.History = append(state.History, e)
			if state.BestMetric == nil || *m.EvalLoss < *state.BestMetric {
				state.BestMetric, state.BestStep = m.EvalLoss, int(m.Step)
			}
		}
	}
	state.MaxSteps = state.GlobalStep
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(state)
}
