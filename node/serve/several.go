package serve

import (
	"context"
	"sync"

	"github.com/starling-network/starling/web/openai"
)

// Library knows models by name.
type Library interface {
	// Models lists them.
	Models() []openai.Info
	// Folder of one, in Hugging Face form; the error wraps openai.ErrModel.
	Folder(name string) (string, error)
}

// ModelCache is an openai.Model of many, of which one is in memory at a time: that which was last asked. While it
// writes texts, requests for another get openai.ErrBusy.
type ModelCache struct {
	library Library
	options Options

	mu     sync.Mutex
	engine *Engine // nil: none is in memory
	name   string  // of it
	users  int
}

// NewSeveral serves the models of a library.
func NewSeveral(l Library, o Options) *ModelCache { return &ModelCache{library: l, options: o} }

// Models lists those of the library. That in memory has a state.
func (s *ModelCache) Models() []openai.Info {
	list := s.library.Models()
	s.mu.Lock()
	defer s.mu.Unlock()
	there := false
	for i, info := range list {
		if s.engine != nil && info.Name == s.name {
			list[i].State = s.engine.infos[0].State
			there = true
		}
	}
	if !there && s.users == 0 {
		s.close() // it was removed, and needs no memory any more
	}
	return list
}

// use has a model in memory until it is released.
func (s *ModelCache) use(name string) (*Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil || s.name != name {
		if s.users > 0 {
			return nil, openai.ErrBusy
		}
		dir, err := s.library.Folder(name)
		if err != nil {
			return nil, err
		}
		o := s.options
		o.Name = name
		s.close()
		if s.engine, err = Open(dir, o); err != nil {
			return nil, err
		}
		s.name = name
	}
	s.users++
	return s.engine, nil
}

func (s *ModelCache) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
}

// close needs the lock.
func (s *ModelCache) close() {
	if s.engine != nil {
		s.engine.Close()
		s.engine = nil
	}
}

// Close ends the engine. Those who wait for text get an error.
func (s *ModelCache) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// Prompt renders a conversation by the chat template of a model.
func (s *ModelCache) Prompt(name string, conversation []openai.Message) (string, []string, error) {
	e, err := s.use(name)
	if err != nil {
		return "", nil, err
	}
	defer s.release()
	return e.Prompt(name, conversation)
}

// Generate continues a prompt by a model.
func (s *ModelCache) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	e, err := s.use(r.Model)
	if err != nil {
		return openai.Result{}, err
	}
	defer s.release()
	return e.Generate(ctx, r, emit)
}
