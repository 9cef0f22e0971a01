// SPDX-License-Identifier: Apache-2.0

// Package units runs the services of systemd unit files, for machines that have no systemd. It supports what node
// configurations use:
//   - unit files and drop-ins (NAME.d/*.conf) in the given folders, where the first folder takes precedence; a unit
//     that is a link to /dev/null is masked;
//   - enablement by TARGET.wants/ and TARGET.requires/ links and by presets (enable with or without instances, disable;
//     the first match applies);
//   - [Unit] After, Before, Requires, BindsTo, Wants, ConditionPathExists; targets are reached immediately;
//   - [Service] Type (simple, exec, idle, notify, oneshot), ExecStartPre, ExecStart, ExecStartPost, ExecStop,
//     Environment, EnvironmentFile, WorkingDirectory, Restart, RestartSec, RemainAfterExit, KillMode, TimeoutStartSec,
//     TimeoutStopSec;
//   - the specifiers %n %N %p %i %H %t %%, and $VARIABLE in commands.
//
// A unit of another kind (timer, socket, ...) or Type is reported as failed. Other settings have no effect.
package units
