package journal

import "sync"

// Logs are those of the models of a server. They are safe for concurrent use.
type Logs struct {
	Dir string // folder; "": no log is begun

	mu  sync.Mutex
	all map[string]*Log // by model
}

// NewLogs returns none.
func NewLogs() *Logs { return &Logs{all: map[string]*Log{}} }

// Begin begins the log of a model.
func (l *Logs) Begin(h Head) error {
	if l.Dir == "" {
		return nil
	}
	begun, err := New(l.Dir, h)
	if err == nil {
		l.Put(begun)
	}
	return err
}

// Put adds a log.
func (l *Logs) Put(one *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[one.Head.Model] = one
}

// Of is the log of a model, or nil.
func (l *Logs) Of(model string) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[model]
}

// Take removes the log of a model from the list, and returns it; nil: there is none.
func (l *Logs) Take(model string) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.all[model]
	delete(l.all, model)
	return taken
}
