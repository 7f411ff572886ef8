package tracking

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/client/api"
)

// Events writes an event file of TensorBoard: records of a length, the checksum of the length, an Event in protocol
// buffers and the checksum of that (tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto).
type Events struct{ w io.Writer }

// NewEvents begins a file. Entries of an earlier file of the folder at the given step and later ones become invalid,
// as after a run that was resumed.
func NewEvents(w io.Writer, step uint32, at time.Time) (*Events, error) {
	e := &Events{w}
	if err := e.record(event(0, at, text(3, "brain.Event:2"))); err != nil {
		return nil, err
	}
	return e, e.Restart(step, at)
}

// Restart says that what was written about the given step and later ones counts no more.
func (e *Events) Restart(step uint32, at time.Time) error {
	const started = 1
	return e.record(event(step, at, message(7, integer(1, started))))
}

// Add writes the numbers of a metric, all in one record: a reader sees them or does not.
func (e *Events) Add(m api.Metric, at time.Time) error {
	var values []byte
	for _, s := range Scalars(m) {
		value := append(text(1, s.Name), fixed32(2, math.Float32bits(float32(s.Value)))...)
		values = append(values, message(1, value)...)
	}
	return e.record(event(m.Step, at, message(5, values)))
}

func (e *Events) record(data []byte) error {
	var head [12]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(data)))
	binary.LittleEndian.PutUint32(head[8:], checksum(head[:8]))
	whole := append(head[:], data...)
	_, err := e.w.Write(binary.LittleEndian.AppendUint32(whole, checksum(data)))
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is a CRC-32C, turned so that it can be stored in what is checked itself.
func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// event is an Event: when, at which step, and what.
func event(step uint32, at time.Time, what []byte) []byte {
	b := fixed64(1, math.Float64bits(float64(at.UnixMicro())/1e6))
	return append(append(b, integer(2, uint64(step))...), what...)
}

// The wire format of protocol buffers: a field is its number and kind, then its value.
func key(field, kind uint64) []byte { return binary.AppendUvarint(nil, field<<3|kind) }

func integer(field, x uint64) []byte { return binary.AppendUvarint(key(field, 0), x) }

func fixed64(field, x uint64) []byte { return binary.LittleEndian.AppendUint64(key(field, 1), x) }

func fixed32(field uint64, x uint32) []byte {
	return binary.LittleEndian.AppendUint32(key(field, 5), x)
}

func message(field uint64, b []byte) []byte {
	return append(binary.AppendUvarint(key(field, 2), uint64(len(b))), b...)
}

func text(field uint64, s string) []byte { return message(field, []byte(s)) }

// CreateEvents makes an event file in a folder of TensorBoard, which it makes if there is none. Later files of a folder
// follow earlier ones by their names.
func CreateEvents(dir string, at time.Time) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d.starling.%d", at.Unix(), at.Nanosecond())),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}
