package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	reference "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

const room = 1 << 20

type row struct {
	ID   int64   `parquet:"id"`
	Text string  `parquet:"text"`
	Note *string `parquet:"note,optional"`
	Tags []string
	Meta struct{ Text string }
}

func rows(n int) (rows []row, texts, notes []string) {
	for i := range n {
		r := row{ID: int64(i), Text: strings.Repeat("word ", i%7) + fmt.Sprint(i%23), Tags: []string{"a", "b"}}
		r.Meta.Text = "inner"
		if i%50 == 9 {
			r.Text = ""
		}
		if i%3 != 1 {
			note := "é note " + fmt.Sprint(i%5)
			r.Note = &note
			notes = append(notes, note)
		}
		rows, texts = append(rows, r), append(texts, r.Text)
	}
	return rows, texts, notes
}

// write makes a file with the reference library.
func write(t testing.TB, rows []row, options ...reference.WriterOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w := reference.NewGenericWriter[row](&out, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadsWhatTheReferenceWrites(t *testing.T) {
	rows, texts, notes := rows(1000)
	for _, codec := range []compress.Codec{&reference.Uncompressed, &reference.Snappy, &reference.Gzip, &reference.Zstd} {
		for _, enc := range []encoding.Encoding{
			&reference.Plain, &reference.RLEDictionary, &reference.DeltaLengthByteArray, &reference.DeltaByteArray,
		} {
			for version := 1; version <= 2; version++ {
				name := fmt.Sprint(codec, " ", enc, " v", version)
				file := write(t, rows, reference.Compression(codec), reference.DefaultEncodingFor(reference.ByteArray, enc),
					reference.DataPageVersion(version), reference.PageBufferSize(2000), reference.MaxRowsPerRowGroup(300))
				for column, want := range map[string][]string{"text": texts, "note": notes} {
					got, err := valuesOf(file, column, room)
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%s, %s: %d values, %v, want %d", name, column, len(got), err, len(want))
					}
				}
			}
		}
	}
}

func TestNoRows(t *testing.T) {
	if got, err := valuesOf(write(t, nil), "text", room); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRefuses(t *testing.T) {
	many, _, _ := rows(100)
	good := write(t, many)
	withBrotli := write(t, many, reference.Compression(&reference.Brotli))
	for _, c := range []struct {
		name   string
		data   []byte
		column string
		want   error
	}{
		{"absent column", good, "txt", ErrColumn},
		{"another type", good, "id", ErrColumn},
		{"a list", good, "Tags", ErrColumn},
		{"a nested column", good, "Meta", ErrColumn},
		{"empty", nil, "text", ErrMalformed},
		{"another format", []byte("{\"text\": \"this is no parquet file\"}"), "text", ErrMalformed},
		{"encrypted", append([]byte("PARE"), good[4:]...), "text", ErrUnsupported},
		{"another compression", withBrotli, "text", ErrUnsupported},
		{"no bytes before the footer", append([]byte("PAR1"), good[len(good)/2:]...), "text", ErrMalformed},
	} {
		if _, err := valuesOf(c.data, c.column, room); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	_, err := valuesOf(good, "txt", room)
	if err == nil || !strings.Contains(err.Error(), `"text", "note"`) {
		t.Errorf("the columns are not named: %v", err)
	}
}

// A single value, written once in a dictionary, is a million rows.
func TestLimitBoundsWhatSmallFilesUnpackTo(t *testing.T) {
	same := slices.Repeat([]row{{Text: strings.Repeat("a", 1000)}}, 10_000)
	for _, enc := range []encoding.Encoding{&reference.RLEDictionary, &reference.Plain} {
		file := write(t, same, reference.DefaultEncodingFor(reference.ByteArray, enc), reference.Compression(&reference.Zstd))
		if len(file) > 300_000 {
			t.Fatalf("the file has %d bytes", len(file))
		}
		if _, err := valuesOf(file, "text", room); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: %v", enc, err)
		}
		if got, err := valuesOf(file, "text", 16*room); err != nil || len(got) != len(same) {
			t.Errorf("%v: %d values, %v", enc, len(got), err)
		}
	}
	if _, err := valuesOf(write(t, make([]row, 100_000)), "text", room); !errors.Is(err, ErrTooLarge) {
		t.Errorf("empty rows: %v", err)
	}
}

func TestTruncatedAndDamagedFilesAreRefusedWithAPlace(t *testing.T) {
	many, texts, _ := rows(200)
	good := write(t, many, reference.Compression(&reference.Snappy), reference.PageBufferSize(500))
	for n := range len(good) {
		if _, err := valuesOf(good[:n], "text", room); !errors.Is(err, ErrMalformed) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	placed := 0
	for at := range len(good) {
		got, err := valuesOf(damaged(good, at), "text", room)
		typed := errors.Is(err, ErrMalformed) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrColumn) ||
			errors.Is(err, ErrTooLarge)
		if err != nil && !typed {
			t.Fatalf("byte %d: untyped error %v", at, err)
		}
		if err == nil && len(got) > len(texts) {
			t.Fatalf("byte %d: %d values of %d", at, len(got), len(texts))
		}
		if err != nil && strings.Contains(err.Error(), "row group 0: page at byte ") {
			placed++
		}
	}
	if placed < 100 {
		t.Errorf("%d errors say in which page", placed)
	}
}

// Row groups that all point to the same pages must not multiply the work.
func TestRowGroupsMustNotOverlap(t *testing.T) {
	many, _, _ := rows(50)
	file := write(t, many)
	f, err := readFooter(bytes.NewReader(file), int64(len(file)), "text")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{data: bytes.NewReader(file), size: int64(len(file)), visit: func(string) bool { return true },
		text: 1 << 40, unpacked: 1 << 40, packed: int64(len(file))}
	for range 100 {
		if err = r.chunk(f.chunks[0]); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrMalformed) {
		t.Errorf("the same pages were read a hundred times: %v", err)
	}
}

func damaged(file []byte, at int) []byte {
	file = bytes.Clone(file)
	file[at] ^= 0x55
	return file
}

func FuzzStrings(f *testing.F) {
	many, _, _ := rows(40)
	for _, enc := range []encoding.Encoding{&reference.Plain, &reference.RLEDictionary, &reference.DeltaLengthByteArray,
		&reference.DeltaByteArray} {
		for version, codec := range []compress.Codec{&reference.Uncompressed, &reference.Zstd} {
			f.Add(write(f, many, reference.Compression(codec), reference.DefaultEncodingFor(reference.ByteArray, enc),
				reference.DataPageVersion(1+version)))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, column := range []string{"text", "note"} {
			got, err := valuesOf(data, column, room)
			if err != nil {
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrColumn) &&
					!errors.Is(err, ErrTooLarge) {
					t.Fatalf("untyped error %v", err)
				}
				continue
			}
			size := 0
			for _, s := range got {
				size += rowBytes + len(s)
			}
			if size > room {
				t.Fatalf("%d bytes", size)
			}
		}
	})
}

// valuesOf are the values of a column.
func valuesOf(file []byte, column string, limit int64) (all []string, err error) {
	err = Each(bytes.NewReader(file), int64(len(file)), column, limit, func(text string) bool {
		all = append(all, text)
		return true
	})
	return all, err
}
