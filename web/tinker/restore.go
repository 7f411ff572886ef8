package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker/clients"
	"github.com/starling-network/starling/web/tinker/journal"
	"github.com/starling-network/starling/web/tinker/work"
)

// stepName is the operation after which the requests before it have no effect on later ones.
const stepName = "optim_step"

// replays read those requests that a server makes again if the one before it did not answer them: they change a model.
var replays = map[string]func(s *Server, r request) (job, error){"forward_backward": (*Server).pass,
	stepName: (*Server).step, "load_weights": (*Server).load}

// Restore keeps the models of the engine, which is Lasting, and the requests to them in a folder, and continues with
// those of the server before this one.
func (s *Server) Restore(dir string) error {
	e, ok := s.engine.(Lasting)
	if !ok {
		return fmt.Errorf("tinker: the models of %T end with the server", s.engine)
	}
	logs, err := journal.Open(dir)
	if err != nil {
		return err
	}
	s.logs.Dir = dir
	for _, l := range logs {
		if err := restore(s, e, l); err != nil {
			return fmt.Errorf("tinker: %s in %s: %w", l.Head.Model, dir, err)
		}
	}
	return nil
}

// restore continues with a model.
func restore(s *Server, e Lasting, l *journal.Log) error {
	h := l.Head
	var c Create
	if err := json.Unmarshal(h.Create, &c); err != nil {
		return err
	}
	s.clients.Restore(h.Model, h.Session, h.Token, c)
	s.logs.Put(l)
	resume := func() (any, error) {
		err := e.Resume(h.Model, c)
		if err == nil {
			return created(h.Model), nil
		}
		if s.config.Log != nil {
			s.config.Log.Error("a model cannot be continued; its log stays", "model", h.Model, "log", s.logs.Dir, "err", err)
		}
		s.clients.Forget(h.Model)
		s.logs.Take(h.Model)
		err = errors.Join(err, l.Close()) // with it, the requests wait for a server that can continue
		return nil, failure.New(http.StatusNotFound, "MODEL_LOST", "the model cannot be continued: "+err.Error(),
			"create it again")
	}
	s.queue.Always(work.Piece{ID: h.Request, Owner: h.Token, Lines: []string{h.Model},
		Do: func() (any, error) { return work.Held(resume), nil }})
	all, ended := l.Entries()
	for i, a := range all {
		if a.Number != nil {
			s.clients.Note(h.Model, *a.Number, a.Digest, a.ID)
		}
		if a.Answered {
			s.queue.Keep(a.ID, a.By.Token, a.Result, a.Err)
		}
		if i >= ended {
			if err := again(s, l, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// again does a request again, whose effect is not in the weights of the model. The client has the answer to one that
// was answered.
func again(s *Server, l *journal.Log, a journal.Entry) error {
	read := replays[a.Name]
	if read == nil {
		return fmt.Errorf("the request %s is %q, which none is", a.ID, a.Name)
	}
	j, err := read(s, request{by: a.By, body: a.Body})
	j.model = l.Head.Model // also of one that is refused
	do := func() (any, error) {
		if err != nil {
			return nil, err
		}
		return j.do(a.ID)
	}
	if a.Answered {
		s.queue.Always(work.Piece{ID: clients.NewID("request"), Lines: j.lines(), Do: do})
		return nil
	}
	s.queue.Always(work.Piece{ID: a.ID, Owner: a.By.Token, Lines: j.lines(), Do: do,
		Ended: answers(s.ctx, l, a.Name, s.config.Log)})
	return nil
}

// beginLog begins the log of a model that was created, if there are logs.
func beginLog(l *journal.Logs, h journal.Head, c Create) (err error) {
	if h.Create, err = json.Marshal(c); err != nil {
		return err
	}
	return l.Begin(h)
}

// answers notes results in the log of a model, but for those of the end of the server.
func answers(ctx context.Context, one *journal.Log, name string, log *slog.Logger) func(f *work.Future) {
	return func(f *work.Future) {
		if ctx.Err() != nil {
			return
		}
		ends := name == stepName || name == "load_weights" && f.Err == nil
		if err := one.Answer(f.ID, f.Result, f.Err, ends); err != nil && log != nil {
			log.Error("a result is not kept", "request_id", f.ID, "err", err)
		}
	}
}

// forget drops a model, its name and its log.
func (s *Server) forget(model string) {
	s.engine.Unload(model)
	s.drop(model)
}

// drop drops the name and the log of a model.
func (s *Server) drop(model string) {
	s.clients.Forget(model)
	l := s.logs.Take(model)
	if l == nil {
		return
	}
	if err := l.Remove(); err != nil && s.config.Log != nil {
		s.config.Log.Error("the log of a model stays", "model", model, "err", err)
	}
}

// addLogged is add for a request that is noted first.
func addLogged(s *Server, l *journal.Log, name string, r request, j job) (string, error) {
	id := clients.NewID("request")
	e := journal.Entry{ID: id, Name: name, Number: j.number, By: r.by,
		Digest: clients.Digest(r.body), Body: r.body}
	if err := l.Ask(e, name == stepName); err != nil {
		return "", err
	}
	_, err := s.queue.Add(work.Piece{ID: id, Owner: r.by.Token, Bytes: len(r.body), Lines: j.lines(),
		Do: func() (any, error) { return j.do(id) }, Ended: answers(s.ctx, l, name, s.config.Log)})
	if err != nil {
		return "", errors.Join(err, l.Drop(id))
	}
	return id, nil
}
