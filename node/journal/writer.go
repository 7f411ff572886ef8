package journal

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/role"
)

// dirJournal, in a party's folder, holds its journals.
const dirJournal = "events"

// Writer writes the events and actions of a role to a journal. If the journal cannot be written the work
// continues without it. The methods of a nil Writer do nothing.
type Writer struct {
	journal *Journal // nil: it ended early
	log     *slog.Logger
}

// OpenWriter begins the journal of a role over the folder of its party.
func OpenWriter(dir string, h Header, log *slog.Logger) *Writer {
	h.Time = time.Now()
	j, err := Create(Options{Dir: filepath.Join(dir, dirJournal)}, h)
	if err != nil {
		log.Warn("no journal is kept", "err", err)
		return nil
	}
	return &Writer{journal: j, log: log}
}

// Note writes down an event, and the actions that the role asked for in answer to it.
func (m *Writer) Note(e role.Event, actions []role.Action) {
	if m == nil || m.journal == nil {
		return
	}
	if err := m.journal.Note(time.Now(), e, actions); err != nil {
		m.log.Warn("the journal ends here", "err", errors.Join(err, m.journal.Close()))
		m.journal = nil
	}
}

// Close ends the journal.
func (m *Writer) Close() {
	if m != nil && m.journal != nil {
		_ = m.journal.Close() // nothing is lost that was written
		m.journal = nil
	}
}
