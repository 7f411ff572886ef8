package member

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/role"
)

// dirJournal, in a party's folder, holds its journals.
const dirJournal = "events"

// JournalWriter are what a role is told and asks for, written down in a journal. Where none can be kept the work goes
// on without: nil minutes are of a role that keeps none.
type JournalWriter struct {
	journal *journal.Journal // nil: it ended early
	log     *slog.Logger
}

// OpenJournal begins the journal of a role over the folder of its party.
func OpenJournal(dir string, h journal.Header, log *slog.Logger) *JournalWriter {
	h.Time = time.Now()
	j, err := journal.Create(journal.Options{Dir: filepath.Join(dir, dirJournal)}, h)
	if err != nil {
		log.Warn("no journal is kept", "err", err)
		return nil
	}
	return &JournalWriter{journal: j, log: log}
}

// Note writes down an event, and the actions that the role asked for in answer to it.
func (m *JournalWriter) Note(e role.Event, actions []role.Action) {
	if m == nil || m.journal == nil {
		return
	}
	if err := m.journal.Note(time.Now(), e, actions); err != nil {
		m.log.Warn("the journal ends here", "err", errors.Join(err, m.journal.Close()))
		m.journal = nil
	}
}

// Close ends the journal.
func (m *JournalWriter) Close() {
	if m != nil && m.journal != nil {
		_ = m.journal.Close() // nothing is lost that was written
		m.journal = nil
	}
}
