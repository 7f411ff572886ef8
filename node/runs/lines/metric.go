package lines

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/starling-network/starling/client/api"
)

// Metric reads a record of metrics.jsonl, of which long runs have a hundred thousand. A line in the form in which
// they are written takes a tenth of the time of encoding/json; any other is left to that.
func Metric(line []byte) (m api.Metric, err error) {
	if m, ok := flatMetric(line); ok {
		return m, nil
	}
	m = api.Metric{}
	err = json.Unmarshal(line, &m)
	return m, err
}

// flatMetric reads an object of numbers and plain strings without white space.
func flatMetric(b []byte) (m api.Metric, ok bool) {
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		return m, false
	}
	b = b[1 : len(b)-1]
	for len(b) > 0 {
		if b[0] != '"' {
			return m, false
		}
		end := bytes.IndexByte(b[1:], '"') + 1
		if end == 0 || end+1 >= len(b) || b[end+1] != ':' {
			return m, false
		}
		key := b[1:end]
		b = b[end+2:]
		stop := bytes.IndexByte(b, ',')
		if stop < 0 {
			stop = len(b)
		}
		if !setMetric(&m, string(key), b[:stop]) {
			return m, false
		}
		if stop == len(b) {
			return m, true
		}
		if b = b[stop+1:]; len(b) == 0 {
			return m, false
		}
	}
	return m, false
}

func setMetric(m *api.Metric, key string, value []byte) (ok bool) {
	if len(value) == 0 || value[0] != '"' && value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	text := string(value)
	var err error
	integer := func(bits int) uint64 {
		if len(text) > 1 && text[0] == '0' {
			err = strconv.ErrSyntax
		}
		n, wrong := strconv.ParseUint(text, 10, bits)
		if wrong != nil {
			err = wrong
		}
		return n
	}
	real := func() (x float64) {
		if !plainNumber(text) {
			err = strconv.ErrSyntax
			return 0
		}
		x, err = strconv.ParseFloat(text, 64)
		return x
	}
	switch key {
	case "kind":
		switch text {
		case `"step"`:
			m.Kind = "step"
		case `"round"`:
			m.Kind = "round"
		default:
			return false
		}
	case "round":
		m.Round = uint32(integer(32))
	case "step":
		m.Step = uint32(integer(32))
	case "loss":
		m.Loss = real()
	case "eval_loss":
		x := real()
		m.EvalLoss = &x
	case "bits_per_byte":
		x := real()
		m.BitsPerByte = &x
	case "learning_rate":
		m.LearningRate = real()
	case "grad_norm":
		x := real()
		m.GradNorm = &x
	case "agreement":
		x := real()
		m.Agreement = &x
	case "tokens":
		m.Tokens = integer(64)
	case "tokens_per_second":
		m.TokensPerSecond = real()
	case "bytes_up":
		m.BytesUp = integer(64)
	case "bytes_down":
		m.BytesDown = integer(64)
	case "workers":
		m.Workers = int(integer(31))
	case "seconds":
		m.Seconds = real()
	case "paid_uzen":
		m.PaidUzen = integer(64)
	case "time":
		err = m.Time.UnmarshalJSON(value)
	default:
		return false
	}
	return err == nil
}

// plainNumber reports whether a text is a number as JSON writes one.
func plainNumber(s string) bool {
	digits := func() (n int) {
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n
	}
	if s[0] == '-' {
		s = s[1:]
	}
	leading := len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9'
	if leading || digits() == 0 {
		return false
	}
	if len(s) > 0 && s[0] == '.' {
		if s = s[1:]; digits() == 0 {
			return false
		}
	}
	if len(s) > 0 && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; len(s) > 0 && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	return len(s) == 0
}
