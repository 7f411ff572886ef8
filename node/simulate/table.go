package simulate

import (
	"bytes"
	"encoding/csv"
	"strconv"

	"github.com/starling-network/starling/node/rundir"
)

// table is the rounds as comma-separated values. Of a modelled job the losses are left out.
func table(metrics []rundir.Metric, modelled bool) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"round", "step", "tokens", "seconds", "train_loss", "eval_loss", "bytes_up", "bytes_down",
		"paid_uzen"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }
	var at float64
	for _, m := range metrics {
		if m.Kind != "round" {
			continue
		}
		at += m.Seconds
		train, eval := number(m.Loss), ""
		if m.EvalLoss != nil {
			eval = number(*m.EvalLoss)
		}
		if modelled {
			train = ""
		}
		_ = w.Write([]string{
			strconv.Itoa(int(m.Round)), strconv.Itoa(int(m.Step)), strconv.FormatUint(m.Tokens, 10), number(at), train, eval,
			strconv.FormatUint(m.BytesUp, 10), strconv.FormatUint(m.BytesDown, 10), strconv.FormatUint(m.PaidUzen, 10),
		})
	}
	w.Flush() // to memory: it does not fail
	return b.Bytes()
}
