// Package serve keeps a model in memory and continues the texts that many ask for at the same time: an Engine is the
// goroutine that steps a generate.Scheduler, with a tokenizer before it and a text.Writer behind it. It is an
// openai.Model.
//
// It reads model folders and knows no HTTP, no network and no chain.
package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/generate/text"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openai/strategy"
)

// ErrFolder wraps every reason why a folder is not a model, or not an adapter of it.
var ErrFolder = errors.New("not a model that can be served")

// errClosed is what those hear who still wait for text.
var errClosed = errors.New("the server stops")

// Options say what an engine serves and how much at once. Zero values are defaults.
type Options struct {
	Name     string    // of the model; "": the name of its folder
	Adapters []Adapter // of the model
	Threads  int       // 1
	Texts    int       // written at once: 16
	Waiting  int       // further ones that may wait: 64
	Memory   int64     // bytes of keys and values: 1 GiB
	Checked  bool      // answers of the model and of its adapters can be checked in one pass, by compute/model/check
	// AdapterMemory is the bytes of adapters in memory at a time: 1 GiB. The others are read when they are asked for.
	AdapterMemory int64
	// Stages are those of a model, of which the folder has the front (package layered/part); nil: it is refused
	Stages func(part.Manifest, section.Layout) (generate.Stages, error)
}

// Adapter is a folder of an adapter, and the name of the model that it makes of the one served.
type Adapter struct {
	Name, Dir string
	State     string // StateOf that the folder must have; "": any
}

// ParseAdapter reads NAME=DIR, and reports whether a text is one.
func ParseAdapter(text string) (a Adapter, ok bool) {
	a.Name, a.Dir, ok = strings.Cut(text, "=")
	return a, ok && a.Name != "" && a.Dir != ""
}

// Engine is an openai.Model.
type Engine struct {
	tok     *tokenizer.Tokenizer
	infos   []openai.Info // of the model, then of its adapters
	chats   []template
	context int
	ends    []int32 // the tokens that end a text
	waiting int     // that may wait
	checked bool    // answers can be checked
	shelf   *shelf  // of adapters; nil: there are none

	mu        sync.Mutex
	wake      *sync.Cond
	scheduler *generate.Scheduler
	readers   map[*generate.Text]chan<- generate.Token
	closed    error
	done      chan struct{}

	ignored []string          // keys of config.json
	folders map[string]string // of its models, by the names of repositories
}

// Folders are the folders of the models, adapters and experts that the engine serves, by the names of repositories.
func (e *Engine) Folders() map[string]string { return e.folders }

// Ignored lists the keys of config.json that mean nothing to the model.
func (e *Engine) Ignored() []string { return e.ignored }

// Open loads the model in a folder in Hugging Face form, and its adapters, and begins to wait for requests. The error
// wraps ErrFolder.
func Open(dir string, o Options) (*Engine, error) {
	if o.Name == "" {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFolder, err)
		}
		o.Name = filepath.Base(absolute)
	}
	e := &Engine{waiting: positive(o.Waiting, 64), readers: map[*generate.Text]chan<- generate.Token{},
		done: make(chan struct{})}
	e.wake = sync.NewCond(&e.mu)
	load := e.whole
	if part.Is(dir) {
		load = e.front
	}
	model, err := load(dir, o)
	if err != nil {
		return nil, err
	}
	e.scheduler = generate.NewScheduler(model, generate.Limits{Texts: positive(o.Texts, 16),
		Memory: cmp.Or(o.Memory, 1<<30)})
	go e.run()
	return e, nil
}

// whole loads the model, or the mixture, in a folder, and its adapters.
func (e *Engine) whole(dir string, o Options) (generate.Model, error) {
	m, err := pretrained.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, dir, err)
	}
	e.tok, e.context, e.ends, e.ignored = m[0].Tokenizer, m.Context(), m[0].Ends, m.Ignored()
	e.checked = o.Checked && len(m) == 1
	var files []string
	if len(m) > 1 {
		files = append(files, filepath.Join(dir, pretrained.MixtureFile))
	}
	for _, x := range m {
		files = append(files, filepath.Join(dir, x.Path, "model.safetensors"))
	}
	if err := e.add(o.Name, filepath.Join(dir, m[0].Path), files...); err != nil {
		return nil, err
	}
	e.folders = foldersOf(dir, o, m)
	adapters, err := e.adapters(m[0].Config, o.Adapters)
	if err != nil {
		return nil, err
	}
	model, err := m.Reads(positive(o.Threads, 1), adapters...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if b, ok := model.(*generate.Batch); ok && len(adapters) > 0 {
		e.shelf = newShelf(b, m[0].Config, cmp.Or(o.AdapterMemory, 1<<30))
		for i, a := range o.Adapters {
			e.shelf.all = append(e.shelf.all, &shelved{dir: a.Dir, state: e.infos[i+1].State})
		}
	}
	return model, nil
}

// foldersOf lists the folders of a model or of the experts of a mixture, and of adapters.
func foldersOf(dir string, o Options, m pretrained.Mixture) map[string]string {
	const owner = "starling/"
	all := map[string]string{owner + o.Name: dir}
	if len(m) > 1 {
		all = map[string]string{}
		for _, e := range m {
			all[owner+o.Name+"-"+e.Name] = filepath.Join(dir, e.Path)
		}
	}
	for _, a := range o.Adapters {
		all[owner+a.Name] = a.Dir
	}
	return all
}

func positive(n, fallback int) int {
	if n < 1 {
		return fallback
	}
	return n
}

// adapters reads the folders of adapters. Their tensors are read again when they are asked for.
func (e *Engine) adapters(c architecture.Config, list []Adapter) (adapters []generate.Adapter, err error) {
	for _, a := range list {
		for _, known := range e.infos {
			if a.Name == "" || known.Name == a.Name {
				return nil, fmt.Errorf("%w: two models are called %q", ErrFolder, a.Name)
			}
		}
		read, err := folder.ReadAdapter(os.DirFS(a.Dir), c)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFolder, a.Dir, err)
		}
		files := []string{filepath.Join(a.Dir, adapterConfigFile), filepath.Join(a.Dir, adapterFile)}
		if err := e.add(a.Name, a.Dir, files...); err != nil {
			return nil, err
		}
		if state := e.infos[len(e.infos)-1].State; a.State != "" && state != a.State {
			return nil, fmt.Errorf("%w: %s is another adapter than when it was looked at: start again", ErrFolder, a.Dir)
		}
		adapters = append(adapters, generate.Adapter{Config: read.Config})
	}
	return adapters, nil
}

// add lists a model by the files of its weights, with the chat template of a folder. An adapter without a template of
// its own has that of the model.
func (e *Engine) add(name, dir string, files ...string) error {
	info := openai.Info{Name: name}
	info.State, info.Created = stateOf(files...)
	c, err := readChat(dir)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFolder, dir, err)
	}
	if c == nil && len(e.chats) > 0 {
		c = e.chats[0]
	} else if c == nil {
		c = plainChat{}
	}
	e.infos, e.chats = append(e.infos, info), append(e.chats, c)
	return nil
}

// stateOf is a digest of files, and when the last of them changed. Weights in several shards have none.
func stateOf(files ...string) (state string, changed time.Time) {
	h, whole := sha256.New(), true
	for _, file := range files {
		if at, err := os.Stat(file); err == nil {
			changed = at.ModTime()
		}
		raw, err := os.ReadFile(file)
		h.Write(raw)
		whole = whole && err == nil
	}
	if whole {
		state = "fp_" + hex.EncodeToString(h.Sum(nil)[:8])
	}
	return state, changed
}

// Close ends the engine. Those who wait for text get an error.
func (e *Engine) Close() {
	e.mu.Lock()
	e.stop(errClosed)
	e.mu.Unlock()
	<-e.done
}

func (e *Engine) stop(err error) {
	if e.closed == nil {
		e.closed = err
	}
	e.wake.Signal()
}

// run steps the scheduler while there is something to do.
func (e *Engine) run() {
	defer close(e.done)
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.closed == nil {
		if waiting, running := e.scheduler.Load(); waiting+running == 0 {
			e.wake.Wait()
			continue
		}
		tokens, err := e.scheduler.Step()
		if err != nil {
			e.stop(err)
			break
		}
		for _, t := range tokens {
			e.readers[t.Text] <- t
			if t.Finish != "" || t.Err != nil {
				close(e.readers[t.Text])
				delete(e.readers, t.Text)
			}
		}
		e.mu.Unlock() // those who wait for the lock come in here
		e.mu.Lock()
	}
	for _, reader := range e.readers {
		close(reader)
	}
}

// Models lists the model and its adapters.
func (e *Engine) Models() []openai.Info { return e.infos }

// Prompt renders a conversation by the chat template of a model.
func (e *Engine) Prompt(name string, conversation []openai.Message) (string, []string, error) {
	i, err := e.number(name)
	if err != nil {
		return "", nil, err
	}
	return e.chats[i].render(conversation)
}

func (e *Engine) number(name string) (int, error) {
	for i, info := range e.infos {
		if info.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w as %q", openai.ErrModel, name)
}

// Generate continues a prompt. The same model, prompt and options give the same text, whatever else is written
// meanwhile.
func (e *Engine) Generate(ctx context.Context, r openai.Request, emit func(openai.Piece) error) (openai.Result, error) {
	var out openai.Result
	g, err := e.request(r)
	if err != nil {
		return out, err
	}
	release, err := e.hold(g.Adapter)
	if err != nil {
		return out, err
	}
	defer release()
	tokens := make(chan generate.Token, g.Tokens)
	t, err := e.submit(g, tokens)
	if err != nil {
		return out, err
	}
	defer e.cancel(t)
	out.PromptTokens, out.Drawn = len(g.Prompt), drawn(g)
	w := text.NewWriter(e.tok, r.Stops...)
	var logs []openai.Token
	send := func(piece string) error {
		if piece == "" {
			return nil
		}
		p := openai.Piece{Text: piece, Tokens: logs}
		logs = nil
		return emit(p)
	}
	for {
		var token generate.Token
		var ok bool
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case token, ok = <-tokens:
		}
		if !ok {
			return out, e.reason()
		}
		if token.Err != nil {
			return out, token.Err
		}
		if token.Left != nil { // it is no answer of the model that a receipt names
			out.Trace, out.Drawn = &strategy.Trace{Texts: 1, Left: token.Left}, nil
		}
		add(out.Drawn, token)
		if token.Finish == generate.FinishEnd {
			out.Finish = string(generate.FinishEnd)
			return out, send(w.Close())
		}
		out.Tokens++
		if r.Likely >= 0 {
			logs = append(logs, e.logs(token))
		}
		piece, stopped := w.Add(token.ID)
		if err := send(piece); err != nil {
			return out, err
		}
		switch {
		case stopped:
			end(out.Drawn)
			out.Finish = string(generate.FinishEnd)
			return out, nil
		case token.Finish != "":
			out.Finish = string(token.Finish)
			return out, send(w.Close())
		}
	}
}

func (e *Engine) logs(t generate.Token) openai.Token {
	one := func(id int32, log float64) openai.Token {
		return openai.Token{Text: e.tok.Decode([]uint32{uint32(id)}), Log: log}
	}
	out := one(t.ID, t.Log)
	for _, c := range t.Likely {
		out.Likely = append(out.Likely, one(c.ID, c.Log))
	}
	return out
}

// Bound is the number of tokens of the prompt of a request, and the largest number of its answer.
func (e *Engine) Bound(r openai.Request) (prompt, most int, err error) {
	g, err := e.request(r)
	return len(g.Prompt), g.Tokens, err
}

// request is what a scheduler needs to know.
func (e *Engine) request(r openai.Request) (g generate.Request, err error) {
	g = generate.Request{Prompt: r.Tokens, Ends: e.ends, Vocab: e.tok.VocabSize(), Likely: max(r.Likely, 0),
		Sampling: generate.Sampling{Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed}}
	if g.Adapter, err = e.number(r.Model); err != nil {
		return g, err
	}
	g.Sampling.Checked = e.checked
	if g.Prompt == nil {
		for _, id := range e.tok.EncodeText(r.Prompt) {
			g.Prompt = append(g.Prompt, int32(id))
		}
	}
	if len(g.Prompt) == 0 {
		g.Prompt = []int32{append(slices.Clone(e.ends), 0)[0]}
	}
	// The last token that fits is drawn after a full context.
	room := e.context - len(g.Prompt) + 1
	if room < 1 {
		return g, fmt.Errorf("%w: it has %d tokens, the context holds %d", openai.ErrTooLong, len(g.Prompt), e.context)
	}
	g.Tokens = room
	if r.Max > 0 {
		g.Tokens = min(r.Max, room)
	}
	return g, nil
}

func (e *Engine) submit(g generate.Request, tokens chan<- generate.Token) (*generate.Text, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.enqueue(g, tokens)
}

// enqueue needs the lock. tokens has room for every token of the text.
func (e *Engine) enqueue(g generate.Request, tokens chan<- generate.Token) (*generate.Text, error) {
	if e.closed != nil {
		return nil, e.closed
	}
	if waiting, _ := e.scheduler.Load(); waiting >= e.waiting {
		return nil, openai.ErrBusy
	}
	t, err := e.scheduler.Submit(g)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", openai.ErrRequest, err)
	}
	e.readers[t] = tokens
	e.wake.Signal()
	return t, nil
}

func (e *Engine) cancel(t *generate.Text) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scheduler.Cancel(t)
	delete(e.readers, t)
}

// Health is why no text can be written any more, or nil.
func (e *Engine) Health() error { return e.reason() }

func (e *Engine) reason() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
