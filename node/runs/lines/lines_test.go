package lines

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/client/api"
)

// metricLines are the metrics of a round: of its steps, and of its end.
func metricLines(round int) string {
	var b strings.Builder
	for i := range 4 {
		fmt.Fprintf(&b, `{"kind":"step","round":%d,"step":%d,"loss":%g,"learning_rate":1e-05,"workers":3}`+"\n", round,
			4*round+i, 5-float64(round)/2)
	}
	fmt.Fprintf(&b, `{"kind":"round","round":%d,"step":%d,"eval_loss":5.5,"tokens_per_second":1500.25,"paid_uzen":30}`+
		"\n", round, 4*round+4)
	return b.String()
}

// The fast parser of metrics accepts what encoding/json accepts.
func FuzzMetric(f *testing.F) {
	for round := range 3 {
		for l := range strings.Lines(metricLines(round)) {
			f.Add([]byte(strings.TrimSpace(l)))
		}
	}
	for _, s := range []string{`{"kind":"step","loss":01}`, `{"loss":1.}`, `{"loss":.5}`, `{"loss":1e}`,
		`{"step":4294967296}`, `{"loss":"1"}`, `{"kind":"a,b"}`, `{}`, `{"loss":1,}`, `{"loss":0x1p3}`, `{"loss":1_0}`,
		`{"loss":Inf}`, `{"step":-1}`, `{"step":+1}`, `{"kind":"round","time":"2026-11-22T10:00:00.123Z"}`,
		`{"time":"noon"}`, `{"time":1}`,
		`{"kind":"round","paid_uzen":7,"coin":{"denom":"ibc/A","symbol":"dai","decimals":18}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := flatMetric(b)
		if !ok {
			return
		}
		var want api.Metric
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("%q is accepted: %v", b, err)
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("%q: %s", b, diff)
		}
	})
}

// FuzzFollow writes a file in pieces: however it is cut, the records are those of the whole.
func FuzzFollow(f *testing.F) {
	f.Add([]byte("{\"step\":1}\n{\"step\":2}\n"), 5)
	f.Add([]byte("\n\nnull\n{\n\"step\":3}"), 2)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = min(max(cut, 0), len(text))
		whole, parts := File[api.Metric]{}, File[api.Metric]{}
		whole.take(text)
		parts.take(text[:cut])
		parts.take(text[parts.offset:])
		if diff := cmp.Diff(whole.Records, parts.Records); diff != "" || whole.offset != parts.offset {
			t.Error(diff)
		}
	})
}

// A file that is read by several goroutines has its records in order, and a line that is none costs nothing but itself.
func TestFollowLong(t *testing.T) {
	var lines []string
	for round := range 1000 {
		lines = append(lines, strings.SplitAfter(metricLines(round+1), "\n")...)
	}
	lines = slices.Insert(lines, len(lines)/2, "no record\n", "\n", strings.Repeat("x", 3*partBytes)+"\n")
	whole, parts := File[api.Metric]{Decode: Metric}, File[api.Metric]{Decode: Metric}
	whole.take([]byte(strings.Join(lines, "")))
	for _, line := range lines {
		parts.take([]byte(line))
	}
	if diff := cmp.Diff(parts.Records, whole.Records); diff != "" || whole.offset != parts.offset {
		t.Errorf("%d records and %d, offsets %d and %d: %s", len(parts.Records), len(whole.Records), parts.offset,
			whole.offset, diff)
	}
	if len(whole.Records) < 5000 {
		t.Errorf("%d records", len(whole.Records))
	}
}

func BenchmarkDecodeMetric(b *testing.B) {
	line := []byte(strings.Split(metricLines(3), "\n")[0])
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := Metric(line); err != nil {
			b.Fatal(err)
		}
	}
}
