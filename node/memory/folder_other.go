//go:build !unix

package memory

import (
	"errors"
	"os"
)

// Maps says that files can be mapped.
const Maps = false

// mapFile maps nothing: files are read here.
func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func mapScratch(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func rest([]byte) {}
