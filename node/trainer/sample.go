package trainer

import (
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/text"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// texts is how many continuations are written at once.
const texts = 16

// writer continues prompts with models of one shape, whose weights change.
type writer struct {
	batch *generate.Batch
	of    weights // that it has
}

// writer returns that of the shape of weights, with them.
func (t *Trainer) writer(w weights) (*writer, error) {
	found, ok := t.writers[w.create]
	if !ok {
		if len(t.writers) >= maxPrograms { // clients ask for many shapes
			clear(t.writers)
		}
		found = &writer{batch: generate.NewBatch(t.config, t.threads)}
		t.writers[w.create] = found
	}
	if reflect.ValueOf(found.of.params).Pointer() == reflect.ValueOf(w.params).Pointer() {
		return found, nil
	}
	tensors, adapters := w.params, []generate.Adapter(nil)
	if w.create.Rank > 0 {
		tensors, adapters = t.tensors, []generate.Adapter{{Config: w.config, Tensors: w.params}}
	}
	if err := found.batch.SetWeights(tensors, adapters...); err != nil {
		return nil, err
	}
	found.of = w
	return found, nil
}

// seedStep is what the seed of a continuation differs by from that of the one before: 2^64 by the golden ratio.
const seedStep = 0x9e3779b97f4a7c15

// Sample implements tinker.Engine. Tokens are drawn with remembered keys and values; their log-probabilities are those
// of Forward on the whole sequence, to the bit.
func (t *Trainer) Sample(from *tinker.Path, s tinker.Sample) (*tinker.Sampled, error) {
	w, err := t.find(from)
	if err != nil {
		return nil, err
	}
	drawn, err := t.draw(w, s)
	if err != nil {
		return nil, err
	}
	data := make([]tinker.Datum, len(drawn))
	for i, q := range drawn {
		whole := slices.Concat(s.Prompt, q.Tokens)
		data[i] = tinker.Datum{Tokens: whole[:len(whole)-1], Targets: whole[1:]}
	}
	logs, err := t.logProbs(w, data)
	if err != nil {
		return nil, err
	}
	for i := range drawn {
		drawn[i].LogProbs = logs[i][len(s.Prompt)-1:]
	}
	out := &tinker.Sampled{Sequences: drawn}
	if s.PromptLogs {
		out.PromptLogs = logs[0][:len(s.Prompt)-1]
	}
	return out, nil
}

// draw continues a prompt.
func (t *Trainer) draw(w weights, s tinker.Sample) ([]tinker.Sequence, error) {
	b, err := t.writer(w)
	if err != nil {
		return nil, err
	}
	scheduler := generate.NewScheduler(b.batch, generate.Limits{Texts: texts, Memory: t.memory})
	number := map[*generate.Text]int{}
	out, spelled := make([]tinker.Sequence, s.Number), make([]*text.Writer, s.Number)
	for i := range out {
		r := generate.Request{Prompt: s.Prompt, Tokens: s.Tokens, Vocab: t.tok.VocabSize(),
			Ends: slices.Concat(t.ends, s.StopTokens), Sampling: generate.Sampling{Temperature: s.Temperature,
				TopP: s.TopP, TopK: s.TopK, Seed: s.Seed + uint64(i)*seedStep}}
		if w.create.Rank > 0 {
			r.Adapter = 1
		}
		one, err := scheduler.Submit(r)
		if err != nil {
			return nil, refused(err)
		}
		number[one], spelled[i] = i, text.NewWriter(t.tok, s.StopTexts...)
	}
	for waiting, running := scheduler.Load(); waiting+running > 0; waiting, running = scheduler.Load() {
		tokens, err := scheduler.Step()
		if err != nil {
			return nil, err
		}
		for _, token := range tokens {
			if token.Err != nil {
				return nil, refused(token.Err)
			}
			i := number[token.Text]
			out[i].Tokens = append(out[i].Tokens, token.ID)
			_, ended := spelled[i].Add(token.ID)
			if out[i].Stopped = ended || token.Finish == generate.FinishEnd; ended {
				scheduler.Cancel(token.Text)
			}
		}
	}
	return out, nil
}

// refused is an error of generation as one that is the client's, if it is.
func refused(err error) error {
	switch {
	case errors.Is(err, generate.ErrNumbers):
		return infinite(err.Error())
	case errors.Is(err, generate.ErrSampling), errors.Is(err, generate.ErrToken), errors.Is(err, generate.ErrContext),
		errors.Is(err, generate.ErrMemory):
		return failure.New(http.StatusBadRequest, "INVALID_VALUE", err.Error(), "change the sampling parameters")
	}
	return err
}
