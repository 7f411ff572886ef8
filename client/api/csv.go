package api

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// WriteCSV writes a line of names and one of each metric. A value that a metric lacks is empty.
func WriteCSV(w io.Writer, metrics []Metric) error {
	out := csv.NewWriter(w)
	// Error tells
	_ = out.Write([]string{"kind", "round", "step", "loss", "eval_loss", "bits_per_byte", "learning_rate", "tokens",
		"tokens_per_second", "bytes_up", "bytes_down", "workers", "seconds", "paid_uzen", "grad_norm", "agreement",
		"accuracy", "margin", "reward", "recall_at_1", "coin"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	perhaps := func(x *float64) string {
		if x == nil {
			return ""
		}
		return number(*x)
	}
	for _, m := range metrics {
		_ = out.Write([]string{m.Kind, fmt.Sprint(m.Round), fmt.Sprint(m.Step), number(m.Loss), perhaps(m.EvalLoss),
			perhaps(m.BitsPerByte), number(m.LearningRate), fmt.Sprint(m.Tokens),
			number(m.TokensPerSecond), fmt.Sprint(m.BytesUp), fmt.Sprint(m.BytesDown), fmt.Sprint(m.Workers), number(m.Seconds),
			fmt.Sprint(m.PaidUzen), perhaps(m.GradNorm), perhaps(m.Agreement),
			perhaps(m.Measurement("accuracy")), perhaps(m.Measurement("margin")), perhaps(m.Measurement("reward")),
			perhaps(m.Measurement("recall_at_1")), CoinOf(m.Coin).Name()})
	}
	out.Flush()
	return out.Error()
}
