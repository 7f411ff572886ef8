package terminal

import (
	"errors"
	"io/fs"
	"syscall"
)

// FileProblem explains what the system says about a file or folder.
func FileProblem(err *fs.PathError) error {
	p := &Problem{Code: "FILE_UNUSABLE", Why: err.Error()}
	exit := ExitFailure
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		p.What, p.Fix = err.Path+" is a file, or below one", "give a path of folders"
	case errors.Is(err, fs.ErrNotExist) && err.Op == "mkdir":
		p.What, p.Fix = "cannot make the folder "+err.Path, "give a path in a folder that takes new ones"
	case errors.Is(err, fs.ErrNotExist):
		p.Code, p.What, p.Fix, exit = "FILE_NOT_FOUND", "there is no "+err.Path, "give a path that exists", ExitNotFound
	case errors.Is(err, fs.ErrExist):
		p.Code, p.What, p.Fix = "FILE_EXISTS", "there is a "+err.Path+" already", "give another path, or remove it"
		exit = ExitConflict
	case errors.Is(err, syscall.ENOSPC):
		p.What, p.Fix = "the disk has no room for "+err.Path, "free some, or give a path on another disk"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		p.What, p.Fix = "this user may not "+err.Op+" "+err.Path, "give another path, or change its permissions"
	default:
		p.What, p.Fix = "cannot "+err.Op+" "+err.Path, "give another path"
	}
	return WithExit(p, exit)
}
