package layered

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/layered/part"
)

// lacking is the model in one process, without a layer.
func lacking(t *testing.T, layer int) generate.Model {
	t.Helper()
	c, tensors := model(t, 1)
	rest, found := map[string]*tensor.Tensor{}, 0
	for name, x := range tensors {
		if n, ok := c.LayerOf(name); ok && n == layer {
			found = 1
			continue
		} else if ok && n > layer {
			name = strings.Replace(name, fmt.Sprintf(".%d.", n), fmt.Sprintf(".%d.", n-1), 1)
		}
		rest[name] = x
	}
	c.Layers -= found
	b := generate.NewBatch(c, 1)
	if err := b.SetWeights(rest); err != nil {
		t.Fatal(err)
	}
	return b
}

// skipping opens a front of four stages of one layer, whose texts may leave out stage 2 or 3, one at a time.
func skipping(t *testing.T, dir string, p peers, list []string, log *strings.Builder) (*generate.Pipeline, *Line) {
	t.Helper()
	m, _, err := part.ReadFront(filepath.Join(dir, part.Name(section.Front)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Connect(t.Context(), Config{Layout: m.Layout, Weights: m.Weights, Peers: list, Dial: p.dial,
		Timeout: 1e11, Skips: left.Layers{{1}, {2}, {3}}, Look: time.Hour,
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	model, err := generate.NewPipeline(m.Layout, m.Tensors, 1, l)
	if err != nil {
		t.Fatal(err)
	}
	return model, l
}

// told writes two texts, the second of which begins when some tokens of the first are there; then is called before.
// Of each it has the tokens, and the stages that were left out at the end.
func told(t *testing.T, m generate.Model, after int, then func()) (all, without [2]string) {
	t.Helper()
	s := generate.NewScheduler(m, generate.Limits{Texts: 2, Memory: 1 << 30})
	var list []*generate.Text
	submit := func(prompt int) {
		r := generate.Request{Prompt: make([]int32, prompt), Tokens: 9, Sampling: generate.Sampling{Temperature: 1, Seed: 5}}
		for k := range r.Prompt {
			r.Prompt[k] = int32(k * 7 % 256)
		}
		x, err := s.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	submit(70)
	for made := 0; ; {
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range tokens {
			made++
			i := slices.Index(list, x.Text)
			without[i] = fmt.Sprint(x.Left)
			if x.Err != nil {
				all[i] = x.Err.Error()
				continue
			}
			all[i] += fmt.Sprint(x.ID, " ", x.Log, " ")
		}
		if made >= after && len(list) == 1 {
			then()
			submit(3)
		}
		if waiting, running := s.Load(); waiting+running == 0 {
			return all, without
		}
	}
}

func nothing() {}

// A stage without a holder is left out: texts have the bits of a model without its layer, whichever it is.
// When a holder returns, the texts that have begun continue without it, and new ones pass all stages.
func TestStagesAreLeftOut(t *testing.T) {
	dir := written(t, 4, 1)
	whole, _ := told(t, lacking(t, 9), 4, nothing) // there is no such layer
	for _, stage := range []int{2, 3} {
		want, _ := told(t, lacking(t, stage-1), 4, nothing)
		var log strings.Builder
		p, list := start(t, dir, 4)
		absent := p[list[4-stage]]
		absent.left.Store(0)
		m, l := skipping(t, dir, p, list, &log)
		got, without := told(t, m, 4, nothing)
		if said := fmt.Sprint([]int{stage}); got != want || without != [2]string{said, said} {
			t.Errorf("without stage %d: %q, left %q, the model without it writes %q", stage, got, without, want)
		}
		got, without = told(t, m, 4, func() {
			absent.left.Store(-1)
			l.look()
		})
		if got[0] != want[0] || got[1] != whole[1] || without != [2]string{fmt.Sprint([]int{stage}), "[]"} {
			t.Errorf("stage %d returns: %q, left %q, want %q and %q", stage, got, without, want[0], whole[1])
		}
		if got, without = told(t, m, 4, nothing); got != whole || without != [2]string{"[]", "[]"} {
			t.Errorf("stage %d is there: %q, left %q, the model writes %q", stage, got, without, whole)
		}
		if len(l.without) > 0 || !strings.Contains(log.String(), "a stage is passed again") {
			t.Error(l.without, log.String())
		}
	}
}

// A holder that leaves in the middle of a text is left out from there on. Stages that no microbatch left out together
// are not, nor is one that all microbatches passed, nor a stage whose holder refuses a text.
func TestStagesThatLeave(t *testing.T) {
	dir := written(t, 4, 1)
	whole, _ := told(t, lacking(t, 9), 4, nothing)
	for _, c := range []struct {
		gone  []int // stages whose holders leave after the fourth token
		fails bool
	}{{[]int{3}, false}, {[]int{2, 3}, true}, {[]int{1}, true}} {
		var log strings.Builder
		p, list := start(t, dir, 4)
		m, _ := skipping(t, dir, p, list, &log)
		got, without := told(t, m, 4, func() {
			for _, stage := range c.gone {
				p[list[4-stage]].left.Store(0)
			}
		})
		if failed := strings.Contains(got[0], ErrNoHolder.Error()); failed != c.fails {
			t.Errorf("%v leave: %q, left %q", c.gone, got, without)
		}
		first := strings.Join(strings.Fields(whole[0])[:8], " ")
		if !c.fails && (!strings.HasPrefix(got[0], first) || got == whole || without != [2]string{"[3]", "[3]"}) {
			t.Errorf("%v leave: %q, left %q, the model writes %q", c.gone, got, without, whole)
		}
	}
	var log strings.Builder
	p, list := start(t, dir, 4)
	p[list[1]].holder.memory = 1 // of stage 3
	m, l := skipping(t, dir, p, list, &log)
	if got, without := told(t, m, 0, nothing); !strings.Contains(got[0], "no room") || without[0] != "[]" ||
		len(l.missing) > 0 {
		t.Error(got, without)
	}
}
