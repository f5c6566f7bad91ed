"use strict";
// Small helps in forms: reasons used before, which fill the field, and words of ours where a field is missing.
(() => {
  // [data-fills="ID"]: a group of buttons, hidden without scripts. Each writes its text into the field of that id.
  for (const group of document.querySelectorAll("[data-fills]")) {
    const field = document.getElementById(group.dataset.fills);
    if (!field) continue;
    group.hidden = false;
    const buttons = Array.from(group.querySelectorAll("button"));
    const texts = buttons.map((button) => button.textContent);
    for (const button of buttons) {
      button.addEventListener("click", () => {
        // A reason that was picked gives way to the next one; what somebody wrote stays, and gets a line more.
        const written = field.value.trim();
        const isOwn = written !== "" && !texts.includes(written);
        field.value = isOwn ? `${written}\n${button.textContent}` : button.textContent;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        field.focus();
        field.setSelectionRange(field.value.length, field.value.length);
      });
    }
  }

  // [data-missing]: what the browser says where a field that is needed is empty, in place of its own words.
  const needed = Array.from(document.querySelectorAll("[data-missing]"));
  for (const field of needed) {
    field.addEventListener("invalid", () => {
      if (field.validity.valueMissing) field.setCustomValidity(field.dataset.missing);
    });
    // Of radio buttons each one is called invalid, and choosing one answers for all of them.
    field.addEventListener("input", () => {
      for (const other of needed) {
        if (other.form === field.form && other.name === field.name) other.setCustomValidity("");
      }
    });
  }

  // [data-chooses="NAME"]: a box that chooses all boxes of that name, hidden without scripts.
  for (const all of document.querySelectorAll("[data-chooses]")) {
    const boxes = Array.from(document.querySelectorAll(`input[type=checkbox][name="${all.dataset.chooses}"]`));
    const count = document.getElementById(all.dataset.counts);
    const update = () => {
      const chosen = boxes.filter((box) => box.checked).length;
      all.checked = chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
      if (count) count.textContent = `${chosen} of ${boxes.length} chosen`;
    };
    all.closest("[hidden]").hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
      update();
    });
    for (const box of boxes) box.addEventListener("change", update);
    update();
  }
})();
