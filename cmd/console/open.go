// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// openBrowser opens an address. Other users of the computer can read command lines, so that the browser gets a file of
// the user, which leads to the address. The returned function removes the file.
func openBrowser(ctx context.Context, address string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "hypershift-console-")
	if err != nil {
		return func() {}, fmt.Errorf("create a folder for the browser: %w; open the address yourself", err)
	}
	remove = func() { _ = os.RemoveAll(folder) } // The folder has no further use, and only the user can read it.
	file := filepath.Join(folder, "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=` +
		html.EscapeString(address) + `">`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return remove, fmt.Errorf("write %s: %w; open the address yourself", file, err)
	}
	cmd := exec.CommandContext(ctx, "xdg-open", file) //nolint:gosec // The name of the file is the program's own.
	if runtime.GOOS == "darwin" {
		cmd = exec.CommandContext(ctx, "open", file) //nolint:gosec // As above.
	}
	if err := cmd.Start(); err != nil {
		return remove, fmt.Errorf("start %s: %w; open the address yourself", cmd.Path, err)
	}
	go func() { _ = cmd.Wait() }() // The browser's exit code has no meaning.
	return remove, nil
}
