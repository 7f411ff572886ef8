package tracking

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
)

func metrics() []api.Metric {
	first, last, norm, agreement := 5.5, 3.25, 0.75, 0.5
	return []api.Metric{
		{Kind: "round", EvalLoss: &first, Workers: 3},
		{Kind: "step", Round: 1, Step: 1, Loss: 5.25, LearningRate: 0.001, Tokens: 96, Workers: 3},
		{Kind: "step", Round: 1, Step: 2, Loss: 4.5, LearningRate: 0.002, Tokens: 192, Workers: 3, GradNorm: &norm},
		{Kind: "round", Round: 1, Step: 2, Loss: 4.875, EvalLoss: &last, LearningRate: 0.002, Tokens: 192,
			TokensPerSecond: 64, BytesUp: 10, BytesDown: 20, Workers: 3, Seconds: 3, PaidUzen: 2500000, GradNorm: &norm,
			Agreement: &agreement},
	}
}

// wire is a field of a protocol buffer, as its reader sees it.
type wire struct {
	field uint64
	bits  uint64 // of a number
	bytes []byte // of a string or message
}

// fields reads a message: varints, 64 bits, bytes and 32 bits.
func fields(t *testing.T, b []byte) (all []wire) {
	t.Helper()
	varint := func() uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("no varint in %x", b)
		}
		b = b[n:]
		return x
	}
	for len(b) > 0 {
		k := varint()
		f := wire{field: k >> 3}
		switch k & 7 {
		case 0:
			f.bits = varint()
		case 1:
			f.bits, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			n := varint()
			f.bytes, b = b[:n], b[n:]
		case 5:
			f.bits, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			t.Fatalf("kind %d", k&7)
		}
		all = append(all, f)
	}
	return all
}

// read is what a reader of event files sees.
type read struct {
	at       float64
	step     uint64
	version  string
	restarts bool
	values   map[string]float32
}

func readEvents(t *testing.T, b []byte) (all []read) {
	t.Helper()
	sum := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return ((c >> 15) | (c << 17)) + 0xa282ead8
	}
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		if binary.LittleEndian.Uint32(b[8:]) != sum(b[:8]) {
			t.Fatal("the checksum of a length is wrong")
		}
		data := b[12 : 12+n]
		if binary.LittleEndian.Uint32(b[12+n:]) != sum(data) {
			t.Fatal("the checksum of a record is wrong")
		}
		b = b[16+n:]
		e := read{values: map[string]float32{}}
		for _, f := range fields(t, data) {
			switch f.field {
			case 1:
				e.at = math.Float64frombits(f.bits)
			case 2:
				e.step = f.bits
			case 3:
				e.version = string(f.bytes)
			case 5:
				for _, v := range fields(t, f.bytes) {
					parts := fields(t, v.bytes)
					e.values[string(parts[0].bytes)] = math.Float32frombits(uint32(parts[1].bits))
				}
			case 7:
				e.restarts = fields(t, f.bytes)[0].bits == 1
			}
		}
		all = append(all, e)
	}
	return all
}

func TestEventsAreReadBack(t *testing.T) {
	var b bytes.Buffer
	at := time.Unix(1700000000, 500e6)
	e, err := NewEvents(&b, 0, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics() {
		if err := e.Add(m, at); err != nil {
			t.Fatal(err)
		}
	}
	got := readEvents(t, b.Bytes())
	if len(got) != 6 || got[0].version != "brain.Event:2" || !got[1].restarts || got[0].at != 1700000000.5 {
		t.Fatalf("%+v", got)
	}
	if s := got[4]; s.step != 2 || s.values["train/loss"] != 4.5 || s.values["train/learning_rate"] != 0.002 ||
		s.values["train/grad_norm"] != 0.75 || len(s.values) != 3 || len(got[3].values) != 2 {
		t.Errorf("a step: %+v", s)
	}
	if r := got[5]; r.step != 2 || r.values["eval/loss"] != 3.25 || r.values["run/paid_zen"] != 2.5 ||
		r.values["run/tokens_per_second"] != 64 || r.values["run/agreement"] != 0.5 {
		t.Errorf("a round: %+v", r)
	}
}

// Pay in another coin is logged under the name of this coin, and none of it in uzen.
func TestPaidInACoin(t *testing.T) {
	m := metrics()[3]
	m.PaidUzen, m.Coin = 2_500_000_000, &api.Coin{Denom: "ibc/A", Symbol: "dai", Decimals: 18}
	paid := map[string]float64{}
	for _, s := range Scalars(m) {
		if strings.HasPrefix(s.Name, "run/paid") {
			paid[s.Name] = s.Value
		}
	}
	if len(paid) != 1 || paid["run/paid_dai"] != 2.5 {
		t.Error(paid)
	}
	var b bytes.Buffer
	if err := Prometheus(&b, "a", []api.Metric{m}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `starling_job_paid_coins{job="a"} 2.5`) || strings.Contains(b.String(), "uzen") {
		t.Error(b.String())
	}
}

func TestEventsTellOfErrors(t *testing.T) {
	if _, err := NewEvents(broken{}, 0, time.Unix(0, 0)); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestCreateEvents(t *testing.T) {
	dir := t.TempDir() + "/tb"
	f, err := CreateEvents(dir, time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Name(), "tfevents.1700000000") {
		t.Error(list, err)
	}
}

func TestRead(t *testing.T) {
	const two = `{"kind":"step","step":1,"loss":2}` + "\n" + `{"kind":"round","step":1,"eval_loss":3}` + "\n"
	for text, want := range map[string]int{"": 0, two: 2, two + `{"kind":`: 2, `{"kind":` + "\n" + two: -1} {
		if got, err := Read(strings.NewReader(text)); (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%q: %d metrics, %v", text, len(got), err)
		}
	}
}

func TestTrainerState(t *testing.T) {
	var b bytes.Buffer
	if err := TrainerState(&b, metrics()); err != nil {
		t.Fatal(err)
	}
	var state struct {
		Best    float64          `json:"best_metric"`
		Step    int              `json:"global_step"`
		History []map[string]any `json:"log_history"`
	}
	if err := json.Unmarshal(b.Bytes(), &state); err != nil || state.Best != 3.25 || state.Step != 2 ||
		len(state.History) != 4 || state.History[3]["eval_loss"] != 3.25 || state.History[1]["grad_norm"] != nil ||
		state.History[2]["grad_norm"] != 0.75 {
		t.Errorf("%+v, %v", state, err)
	}
}

func TestPrometheus(t *testing.T) {
	var b bytes.Buffer
	if err := Prometheus(&b, `a"b`, metrics()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# HELP starling_job_eval_loss Latest loss on held-out data, in nats a token.\n# " +
		"TYPE starling_job_eval_loss gauge\nstarling_job_eval_loss{job=\"a\\\"b\"} 3.25\n",
		"starling_job_steps{job=\"a\\\"b\"} 2\n", "starling_job_paid_uzen{job=\"a\\\"b\"} 2.5e+06\n",
		"starling_job_agreement{job=\"a\\\"b\"} 0.5\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
