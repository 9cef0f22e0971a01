// SPDX-License-Identifier: Apache-2.0

// Package units runs the services of systemd unit files, for machines that have no systemd. It understands what node
// configurations use:
//
//   - unit files and drop-ins (NAME.d/*.conf) in the folders it is given, the first folder winning; a unit that is a link
//     to /dev/null is masked;
//   - enablement by TARGET.wants/ and TARGET.requires/ links and by presets (enable with or without
//     instances, disable; first match wins);
//   - [Unit] After, Before, Requires, BindsTo, Wants, ConditionPathExists; targets count as reached at once;
//   - [Service] Type (simple, exec, idle, notify, oneshot), ExecStartPre, ExecStart, ExecStartPost, ExecStop, Environment,
//     EnvironmentFile, WorkingDirectory, Restart, RestartSec, RemainAfterExit, KillMode, TimeoutStartSec, TimeoutStopSec;
//   - the specifiers %n %N %p %i %H %t %%, and $VARIABLE in commands.
//
// A unit of another kind (timer, socket, ...) or Type is reported as failed. Other settings have no effect.
package units
