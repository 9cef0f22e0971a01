// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFresh checks that the committed pages match the flags.
func TestFresh(t *testing.T) {
	fresh := t.TempDir()
	if err := write(fresh, markdown); err != nil {
		t.Fatal(err)
	}
	want, got := pages(t, fresh), pages(t, filepath.Join("..", "..", "docs", "reference", "cli"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run: go run ./cmd/docs docs/reference/cli (-fresh +committed):\n%s", diff)
	}
}

func TestManPages(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder, manPages); err != nil {
		t.Fatal(err)
	}
	page := pages(t, folder)["hypershift-create-cluster-maas.1"]
	if !strings.Contains(page, ".SH OPTIONS") {
		t.Errorf("the man page of create cluster maas has no options:\n%s", page)
	}
}

func pages(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}
