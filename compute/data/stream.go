package data

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
)

// Sink takes the tokens of a stream, such as an *os.File, from a byte on.
type Sink interface {
	io.ReaderAt
	io.WriterAt
}

// Progress is how much of the files is tokenized.
type Progress struct {
	Bytes  int64 // of the files, unpacked
	Tokens int64
}

// Watch is called with the progress of a stream, and ends it with an error.
type Watch func(Progress) error

// Stream is a number of tokens that were written to a sink, one after the other, from its first byte on.
type Stream struct {
	Vocab  uint32 // every token is below
	Width  int    // bytes of a token
	Tokens int64
	choice Choice
}

// Bytes is the size of the stream.
func (s Stream) Bytes() int64 { return s.Tokens * int64(s.Width) }

// Write tokenizes the documents of all files in the order given, several blocks of them at once, and writes the tokens
// to a sink from byte at on. Before each document come the tokens that the tokenizer puts before a text, after each the
// tokenizer's token that ends a document; a tokenizer without either, such as tokenizer.Bytes, puts nothing between
// them. Tokens of a file that has them already are taken as they are. The stream is the same however many blocks are
// encoded at once, and the memory that it takes does not grow with the files. watch is called after every block; it may
// be nil.
func Write(to Sink, at int64, files []source.File, t *tokenizer.Tokenizer, c Choice,
	watch Watch) (Stream, error) {
	vocab := uint32(t.VocabSize())
	whole := vocab
	if c.silences() {
		whole *= 2
	}
	w := &writer{to: to, at: at, by: t, vocab: vocab, watch: watch,
		Stream: Stream{Vocab: whole, Width: width(whole), choice: c}}
	for range kernel.Cores {
		w.encoders = append(w.encoders, newEncoder(t, c, w.Width))
	}
	for _, f := range files {
		before := w.Tokens
		read := w.documents
		if source.Tokenized(f.Format) {
			read = w.tokens
		}
		if err := read(f); err != nil {
			return Stream{}, err
		}
		if err := w.weigh(before, f.Weight); err != nil {
			return Stream{}, err
		}
	}
	if w.Tokens == 0 {
		return Stream{}, ErrEmpty
	}
	return w.Stream, nil
}

// Corpus is the corpus of a stream, whose bytes are in memory or mapped. The last valFraction of its tokens, rounded
// down, is for validation: it is chosen by number, and nothing is read. rest is called with parts that are not read for
// a while; it may be nil.
func (s Stream) Corpus(raw []byte, valFraction float64, rest func(part []byte)) (*Corpus, error) {
	if !(valFraction >= 0 && valFraction < 1) {
		return nil, fmt.Errorf("%w, not %v", ErrFraction, valFraction)
	}
	val := int(float64(s.Tokens) * valFraction)
	if s.choice.Pad > 0 {
		val -= val % s.choice.example()
	}
	c := newCorpus(s.Vocab, Tokens{s.Width, raw}, val)
	c.rest = rest
	return c, nil
}

// writer makes a Stream.
type writer struct {
	Stream
	to       Sink
	at       int64 // of the first token
	by       *tokenizer.Tokenizer
	vocab    uint32 // of the tokenizer
	read     int64  // bytes of the files
	watch    Watch
	encoders []*encoder
}

// append writes tokens after those that are there.
func (w *writer) append(raw []byte) error {
	_, err := w.to.WriteAt(raw, w.at+w.Bytes())
	w.Tokens += int64(len(raw) / w.Width)
	return err
}

// passed adds bytes of a file to those that are tokenized, and calls watch.
func (w *writer) passed(bytes int) error {
	w.read += int64(bytes)
	if w.watch == nil {
		return nil
	}
	return w.watch(Progress{Bytes: w.read, Tokens: w.Tokens})
}

// blockBytes is how many bytes of a file are encoded at a time.
const blockBytes = 1 << 20

// documents encodes a file of text: each encoder has a block, and the next ones are read meanwhile.
func (w *writer) documents(f source.File) error {
	cut := tokenizer.Cuts(w.by)
	if w.choice.silences() {
		cut = nil // the end of a document depends on its beginning
	}
	free := make(chan *encoder, len(w.encoders))
	for _, e := range w.encoders {
		free <- e
	}
	blocks := make(chan chan encoded, 2*len(w.encoders)) // in order
	var working sync.WaitGroup
	var ended atomic.Bool
	working.Go(func() {
		defer close(blocks)
		for b, err := range f.Blocks(blockBytes, cut) {
			if ended.Load() {
				return
			}
			made := make(chan encoded, 1)
			blocks <- made
			if err != nil {
				made <- encoded{err: err}
				return
			}
			e := <-free
			working.Go(func() {
				made <- e.block(b)
				free <- e
			})
		}
	})
	examples, failed := 0, error(nil)
	for made := range blocks {
		part := <-made
		if failed != nil {
			continue // until all blocks are done
		}
		failed = w.take(f.Name, part, examples)
		ended.Store(failed != nil)
		examples += part.documents
	}
	working.Wait()
	return failed
}

// take writes the tokens of a block, before which a file has some documents.
func (w *writer) take(name string, part encoded, before int) error {
	if errors.Is(part.err, ErrUnlearnt) || errors.Is(part.err, ErrAnswer) {
		example := (before+part.documents)/max(1, w.choice.Group) + 1
		return &source.Error{Name: name, Err: fmt.Errorf("example %d: %w", example, part.err)}
	}
	if part.err != nil {
		return part.err
	}
	if err := w.append(part.tokens.raw); err != nil {
		return err
	}
	return w.passed(part.bytes)
}

// tokens takes those of a file.
func (w *writer) tokens(f source.File) error {
	if w.choice.Pad > 0 {
		return w.filled(f)
	}
	ids := 0
	var failed error // of the sink
	err := f.Tokens(func(width int, raw []byte) error {
		t := Tokens{width, raw}
		if err := t.within(w.vocab, ids); err != nil {
			return err
		}
		ids += t.Len()
		if failed = w.append(Tokens{width: w.Width}.join(t).raw); failed == nil {
			failed = w.passed(len(raw))
		}
		return failed
	})
	if err != nil && failed == nil {
		return &source.Error{Name: f.Name, Err: err}
	}
	return failed
}

// filled takes the tokens of a file as those of one document.
func (w *writer) filled(f source.File) error {
	var ids []uint32
	read := 0
	err := f.Tokens(func(width int, raw []byte) error {
		t := Tokens{width, raw}
		err := t.within(w.vocab, len(ids))
		read += len(raw)
		for i := range t.Len() {
			ids = append(ids, t.At(i))
		}
		return err
	})
	if err != nil {
		return &source.Error{Name: f.Name, Err: err}
	}
	if err := w.append(Tokens{width: w.Width}.append(w.choice.padded(ids, w.vocab)).raw); err != nil {
		return err
	}
	return w.passed(read)
}

// weigh repeats the tokens of a file, of which the first is number from, as often as its weight says, or cuts them: of
// the last part, the first tokens are taken.
func (w *writer) weigh(from int64, weight float64) error {
	have := w.Tokens - from
	if weight == 0 || weight == 1 || have == 0 {
		return nil
	}
	n := int64(float64(have) * weight)
	if w.choice.Pad > 0 {
		n -= n % int64(w.choice.example())
	}
	w.Tokens = from + min(n, have)
	buffer := make([]byte, blockBytes)
	for next := from; w.Tokens < from+n; {
		k := min(from+n-w.Tokens, int64(len(buffer)/w.Width), w.Tokens-next)
		part := buffer[:k*int64(w.Width)]
		if _, err := w.to.ReadAt(part, w.at+next*int64(w.Width)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := w.append(part); err != nil {
			return err
		}
		if err := w.passed(0); err != nil {
			return err
		}
		next += k
	}
	return nil
}

// memory is a Sink in memory.
type memory struct{ raw []byte }

// WriteAt implements io.WriterAt. It forgets all bytes after those that it writes.
func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	m.raw = append(append(m.raw, make([]byte, max(0, int(at)-len(m.raw)))...)[:at], p...)
	return len(p), nil
}

// ReadAt implements io.ReaderAt.
func (m *memory) ReadAt(p []byte, at int64) (int, error) { return copy(p, m.raw[at:]), nil }
